"""`polymnia search` and `polymnia show`: look into a memory from the command line."""

from datetime import UTC, datetime
from shutil import get_terminal_size
from textwrap import shorten

from msgspec import json

from polymnia.app import configure_logging, remembered
from polymnia.cli.missing import refuse_missing
from polymnia.engine import entities, notes
from polymnia.engine.recall import Recalled, recall
from polymnia.errors import EntityNotFound
from polymnia.model import Entity, Graph, Hit, Note, Observation, Passage, Within
from polymnia.settings import Settings

# How long to wait for the model: somebody looks at the screen.
_PATIENCE = 10.0
_NARROWEST = 60


def search(settings: Settings, query: str, *, limit: int, types: list[str], as_json: bool) -> int:
    """Print what answers the query, the best first; 0 when something does, 1 when nothing does."""
    configure_logging(settings.log_level)
    refuse_missing(settings.store)
    within = Within(types=tuple(types)) if types else None
    with remembered(settings) as memory:
        found = recall(memory, query, limit=limit, within=within, timeout=_PATIENCE)
    print(_search_json(found) if as_json else _search_table(found))
    return 0 if found.hits else 1


def show(settings: Settings, name: str, *, as_json: bool) -> int:
    """Print an entity with all that is known of it, and the vault's note with that key. Raises EntityNotFound."""
    configure_logging(settings.log_level)
    refuse_missing(settings.store)
    with remembered(settings) as memory:
        graph, note = entities.open_named(memory, [name]), notes.in_vault(memory, name)
    if not graph.entities and note is None:
        raise EntityNotFound(name)
    print(_show_json(graph, note) if as_json else _show_table(graph, note))
    return 0


def _search_json(found: Recalled) -> str:
    document = {"hits": [_hit_shape(hit) for hit in found.hits], "note": found.note}
    return json.format(json.encode(document), indent=2).decode()


def _hit_shape(hit: Hit) -> dict[str, object]:
    passage, signals = hit.passage, hit.signals
    return {
        "kind": passage.kind,
        **({"key": passage.entity} if passage.kind == "note" else _place(passage)),
        "text": passage.text,
        "time": _when(passage.valid_at or passage.created_at),
        "score": round(hit.score, 4),
        "matched": hit.match_kind,
        "alike": hit.alike,
        "why": {
            "words": round(signals.words, 4),
            "before": round(signals.before, 4),
            "meaning": None if signals.meaning is None else round(signals.meaning, 4),
            "entity": signals.entity,
            "linked": signals.linked,
            "date": round(signals.date, 4),
            "tells_time": signals.tells_time,
        },
    }


def _place(passage: Passage) -> dict[str, object]:
    return {"entity": passage.entity, "type": passage.type, "ordinal": passage.ordinal}


def _search_table(found: Recalled) -> str:
    width = max(get_terminal_size().columns, _NARROWEST)
    lines = []
    for place, hit in enumerate(found.hits, 1):
        lines.append(shorten(f"{place:2}. {_told(hit.passage)}", width, placeholder=" …"))
        lines.append(f"    {', '.join(_reasons(hit))}")
    if not found.hits:
        lines.append("nothing was found")
    if found.note:
        lines.append(f"by words alone: {found.note}")
    return "\n".join(lines)


def _told(passage: Passage) -> str:
    if passage.kind == "note":
        return f"note {passage.entity}: {passage.text}"
    said = passage.text if passage.ordinal else "(the entity itself)"
    return f"{passage.entity} [{passage.type}]: {said}"


def _reasons(hit: Hit) -> list[str]:
    signals = hit.signals
    reasons = [hit.match_kind]
    if signals.meaning is not None:
        reasons.append(f"meaning {signals.meaning:.2f}")
    if signals.entity:
        reasons.append("named" if signals.entity == 1 else "named in part")
    if signals.linked:
        reasons.append("related to what is named")
    if signals.date:
        reasons.append(f"date {signals.date:.1f}")
    at = _when(hit.passage.valid_at)
    return [*reasons, at] if at else reasons


def _show_json(graph: Graph, note: Note | None) -> str:
    document = _graph_shape(graph) if graph.entities else {}
    if note is not None:
        document["note"] = _note_shape(note)
    return json.format(json.encode(document), indent=2).decode()


def _graph_shape(graph: Graph) -> dict[str, object]:
    (entity,) = graph.entities
    return {
        "name": entity.name,
        "type": entity.type,
        "summary": entity.summary,
        "tags": entity.tags,
        "observations": [_observation_shape(each) for each in entity.observations],
        "relations": [{"from": each.source, "to": each.target, "type": each.type} for each in graph.relations],
        "created": _when(entity.created_at),
        "updated": _when(entity.updated_at),
    }


def _note_shape(note: Note) -> dict[str, object]:
    return {
        "key": note.key,
        "content": note.content,
        "tags": note.tags,
        "created": _when(note.created_at),
        "updated": _when(note.updated_at),
    }


def _observation_shape(observation: Observation) -> dict[str, object]:
    return {
        "ordinal": observation.ordinal,
        "text": observation.text,
        "time": _when(observation.valid_at or observation.created_at),
    }


def _show_table(graph: Graph, note: Note | None) -> str:
    lines: list[str] = []
    for entity in graph.entities:
        lines += [f"{entity.name} [{entity.type}]", *_about(entity)]
        lines += [f"{each.ordinal:4}  {each.text}" for each in entity.observations]
        lines += [f"      {each.source} -[{each.type}]-> {each.target}" for each in graph.relations]
    if note is not None:
        lines += [f"note {note.key}", *_tagged(note.tags), f"      {note.content}"]
    return "\n".join(lines)


def _about(entity: Entity) -> list[str]:
    lines = [f"      {entity.summary}"] if entity.summary else []
    return lines + _tagged(entity.tags)


def _tagged(tags: tuple[str, ...]) -> list[str]:
    return [f"      tags: {', '.join(tags)}"] if tags else []


def _when(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(" ", "minutes").removesuffix("+00:00") if at else ""
