"""A LangGraph store: items are notes, so that people and other agents see them too.

An item is the note `langgraph/NAMESPACE/…/KEY` with the value as JSON. Its tags say whether it is
searched and when it expires.
"""

import operator
import time
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, unquote

from msgspec import json

from polymnia import NoteRecord
from polymnia_frameworks.memory import MAX_SEARCHED, AnyMemory, missing, run

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        validate_op_namespace,
    )
except ImportError as exc:
    raise missing("langgraph-checkpoint") from exc

_ROOT = "langgraph/"
_TAG, _UNSEARCHED = "langgraph", "unsearched"
_TTL, _EXPIRES = "ttl:", "expires:"
_SECONDS = 60
_EQUALITY = ("$eq", "$ne")
_OPERATORS = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
Namespace = tuple[str, ...]


class PolymniaStore(BaseStore):
    """A store for `compile(store=…)`. Searches use words and, with an embedder, meaning."""

    supports_ttl = True
    __slots__ = ("_memory", "ttl_config")

    def __init__(self, memory: AnyMemory, *, ttl: TTLConfig | None = None) -> None:
        self._memory = memory
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads see what was stored before the batch, and the last put counts."""
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            else:
                results.append(self._read(op))
        for put in puts.values():
            self._put(put)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations on a thread."""
        listed = list(ops)
        return await run(lambda: self.batch(listed))

    def sweep_ttl(self) -> int:
        """Delete the expired items. Return how many there were."""
        expired = [note for note in self._notes(()) if _has_expired(note)]
        for note in expired:
            self._memory.notes.delete(note.key)
        return len(expired)

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        raise ValueError(f"unknown operation {type(op).__name__}")

    def _get(self, op: GetOp) -> Item | None:
        note = self._memory.notes.get(_note_key(op.namespace, op.key))
        if note is None or _has_expired(note):
            return None
        if op.refresh_ttl:
            self._extend(note)
        return Item(**_item_fields(note))

    def _put(self, op: PutOp) -> None:
        key = _note_key(op.namespace, op.key)
        if op.value is None:
            self._memory.notes.delete(key)
            return
        tags = [_TAG]
        if op.index is False:
            tags.append(_UNSEARCHED)
        if op.ttl is not None:
            tags += _ttl_tags(op.ttl)
        self._memory.notes.put(key, _encode(op.value), tags=tags)

    def _extend(self, note: NoteRecord) -> None:
        """Let an item with a time to live expire that much later."""
        minutes = _tag_number(note, _TTL)
        if minutes is None:
            return
        tags = [tag for tag in note.tags if not tag.startswith((_TTL, _EXPIRES))]
        self._memory.notes.put(note.key, note.content, tags=[*tags, *_ttl_tags(minutes)])

    def _search(self, op: SearchOp) -> list[SearchItem]:
        notes = []
        for note in self._notes(op.namespace_prefix):
            if not _has_expired(note) and _fits(json.decode(note.content), op.filter or {}):
                notes.append(note)
        scores: dict[str, float] = {}
        if op.query:
            scores = self._scores(op.query)
            # Stored items that the search did not find come last, as in LangGraph's own stores.
            notes.sort(key=lambda note: -scores.get(note.key, 0.0))
        items = []
        for note in notes[op.offset : op.offset + op.limit]:
            items.append(SearchItem(**_item_fields(note), score=scores.get(note.key)))
            if op.refresh_ttl:
                self._extend(note)
        return items

    def _scores(self, query: str) -> dict[str, float]:
        scores = {}
        for hit in self._memory.recall(query, limit=MAX_SEARCHED, tags=[_TAG]):
            if hit.kind == "note":
                scores[hit.name] = hit.score
        for note in self._memory.notes.read(list(scores)):
            if _UNSEARCHED in note.tags:
                del scores[note.key]
        return scores

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        namespaces = set()
        for note in self._notes(()):
            namespace, _ = _split_key(note.key)
            if not _has_expired(note) and _matches_all(namespace, op.match_conditions or ()):
                namespaces.add(namespace[: op.max_depth])
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    def _notes(self, prefix: Namespace) -> Sequence[NoteRecord]:
        """Return the items below a namespace in the order of their keys."""
        below = _ROOT + "".join(f"{_quoted(label)}/" for label in prefix)
        keys = self._memory.notes.keys(below)
        return self._memory.notes.read(keys)


def _note_key(namespace: Namespace, key: str) -> str:
    return _ROOT + "/".join(_quoted(part) for part in (*namespace, key))


def _split_key(note_key: str) -> tuple[Namespace, str]:
    *namespace, key = (unquote(part) for part in note_key.removeprefix(_ROOT).split("/"))
    return tuple(namespace), key


def _quoted(part: str) -> str:
    return quote(part, safe=" @:+,=")


def _encode(value: dict[str, Any]) -> str:
    return json.format(json.encode(value), indent=2).decode()


def _item_fields(note: NoteRecord) -> dict[str, Any]:
    namespace, key = _split_key(note.key)
    return {
        "value": json.decode(note.content),
        "key": key,
        "namespace": namespace,
        "created_at": note.created_at,
        "updated_at": note.updated_at,
    }


def _ttl_tags(minutes: float) -> list[str]:
    expires = time.time() + minutes * _SECONDS
    return [f"{_TTL}{minutes:g}", f"{_EXPIRES}{expires:.3f}"]


def _has_expired(note: NoteRecord) -> bool:
    expires = _tag_number(note, _EXPIRES)
    return expires is not None and expires <= time.time()


def _tag_number(note: NoteRecord, start: str) -> float | None:
    for tag in note.tags:
        if tag.startswith(start):
            return float(tag.removeprefix(start))
    return None


def _matches_all(namespace: Namespace, conditions: Iterable[MatchCondition]) -> bool:
    return all(_matches(namespace, condition) for condition in conditions)


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    labels, pattern = list(namespace), list(condition.path)
    if len(labels) < len(pattern):
        return False
    if condition.match_type == "suffix":
        labels.reverse()
        pattern.reverse()
    return all(wanted in ("*", label) for wanted, label in zip(pattern, labels, strict=False))


def _fits(value: Any, conditions: dict[str, Any]) -> bool:
    """Tell whether a value has the fields that a filter asks for."""
    if not isinstance(value, dict):
        return False
    return all(_compare(value.get(field), expected) for field, expected in conditions.items())


def _compare(value: Any, expected: Any) -> bool:
    if not isinstance(expected, dict):
        return bool(value == expected)
    if any(name.startswith("$") for name in expected):
        return all(_holds(value, name, operand) for name, operand in expected.items())
    return _fits(value, expected)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name not in _OPERATORS:
        raise ValueError(f"unsupported operator {name!r}: use {', '.join(_OPERATORS)}")
    if name in _EQUALITY:
        return bool(_OPERATORS[name](value, operand))
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False  # a missing or structured value has no order
    return bool(_OPERATORS[name](float(value), float(operand)))
