"""Entities, facts, hits and changes as lines for a model and as JSON."""

from typing import Any

from polymnia.dialects.native.budget import Item
from polymnia.dialects.times import iso_time
from polymnia.engine.history import Difference
from polymnia.model import Author, Change, Entity, Hit, Observation, Relation
from polymnia.search.text import count_noun

_MAX_DIFFERENCES = 6
_MAX_DIFFERENCE_LETTERS = 120


def hit_item(hit: Hit, workspace: str, author: Author | None, detail: str) -> Item:
    """Return a hit with where, when and by whom it was written, and whether it is a weak match."""
    passage = hit.passage
    data: dict[str, Any] = {"name": passage.entity, "type": passage.type}
    if passage.kind == "observation":
        data["fact"] = passage.ordinal
    if detail != "names" and passage.text:
        data["text"] = passage.text
    data["workspace"] = workspace
    told = short_time(passage.valid_at)
    if told:
        data["when"] = told
    data |= provenance(author)
    if hit.is_weak:
        data["weak"] = True
    if detail == "full":
        data |= {
            "score": round(hit.score, 3),
            "matched": hit.match_kind,
            "alike": hit.alike,
            "source": passage.source,
        }
    number = f" #{passage.ordinal}" if passage.ordinal > 0 else ""
    text = f": {one_line(passage.text)}" if "text" in data else ""
    about = ", ".join(
        [*(["weak match"] if hit.is_weak else []), *_provenance_phrases(data), workspace]
    )
    data["text"] = one_line(passage.text) if "text" in data else ""
    around = {
        side: [one_line(each.text) for each in getattr(hit, side)] for side in ("before", "after")
    }
    data |= around
    text += "".join([f" ({side}: {' | '.join(texts)})" for side, texts in around.items() if texts])
    return line_item(
        f"- {passage.entity} ({passage.type}){number}{text} [{about}]", _without_blanks(data)
    )


def fact_data(observation: Observation, author: Author | None) -> dict[str, Any]:
    data = {
        "fact": observation.ordinal,
        "text": one_line(observation.text),
        "when": short_time(observation.valid_at),
    }
    return _without_blanks({**data, "source": observation.source, **provenance(author)})


def fact_item(name: str, observation: Observation, author: Author | None, note: str = "") -> Item:
    """Return a fact of an entity, which the line indents below its name."""
    data = fact_data(observation, author)
    told = ", ".join(
        [each for each in (*_provenance_phrases(data), data.get("source", ""), note) if each]
    )
    line = f"  #{observation.ordinal} {data['text']}" + (f" [{told}]" if told else "")
    return line_item(line, _without_blanks({"name": name, **data, "note": note}))


def entity_item(entity: Entity, workspace: str, relations: int) -> Item:
    data = {
        "name": entity.name,
        "type": entity.type,
        "text": one_line(entity.summary or ""),
        "tags": list(entity.tags),
        "facts": len(entity.observations),
        "relations": relations,
        "updated": short_time(entity.updated_at),
        "workspace": workspace,
    }
    summary = f" {data['text']};" if data["text"] else ""
    tags = f" tags: {', '.join(entity.tags)};" if entity.tags else ""
    counts = f"{count_noun(len(entity.observations), 'fact')}, {count_noun(relations, 'relation')}"
    return line_item(
        f"{entity.name} ({entity.type}) [{workspace}]{summary}{tags} {counts}",
        _without_blanks(data),
    )


def relation_item(relation: Relation, workspace: str = "") -> Item:
    """Return a relation, with its workspace unless what it belongs to says it."""
    data = {"from": relation.source, "type": relation.type, "to": relation.target}
    if workspace:
        data["workspace"] = workspace
    return line_item(f"  {relation.source} -{relation.type}-> {relation.target}", data)


def change_item(change: Change, workspace: str, differences: list[Difference]) -> Item:
    """Return a change with what it altered, the first few things of it."""
    shown = [describe_difference(each) for each in differences[:_MAX_DIFFERENCES]]
    more = len(differences) - len(shown)
    text = "; ".join(shown) + (f"; and {more} more" if more else "")
    data = {
        "change": change.id,
        "at": short_time(change.at),
        "by": change.actor,
        "operation": change.operation,
        "text": text,
        "workspace": workspace,
    }
    line = f"- change {change.id} in {workspace}, {data['at']}, {change.actor}, {change.operation}: {text}"
    return line_item(line, data)


def describe_difference(difference: Difference) -> str:
    """Return one thing that a change altered, as text."""
    before, after = [_short(each) for each in (difference.before, difference.after)]
    number = f" #{difference.ordinal}" if difference.ordinal else ""
    what = f"{difference.what} {difference.name}{number}"
    if difference.before is None:
        return f"+ {what}: {after}"
    return (
        f"- {what}: {before}"
        if difference.after is None
        else f"~ {what}: {before or 'none'} => {after or 'none'}"
    )


def _provenance_phrases(data: dict[str, Any]) -> list[str]:
    """Return when a fact was true, and when and by whom it was written."""
    written = f"written {data['written']} by {data['by']}" if "written" in data else ""
    return [each for each in (data.get("when", ""), written) if each]


def provenance(author: Author | None) -> dict[str, str]:
    """Return when and by which client something was written."""
    return {} if author is None else {"written": short_time(author.at), "by": author.actor}


def short_time(at: int) -> str:
    """Return a time as text, to the minute, or as a date if it is midnight; empty if it is unknown."""
    text = iso_time(at) or ""
    return (
        text.removesuffix("T00:00:00Z")
        if text.endswith("T00:00:00Z")
        else f"{text[:16]}Z"
        if text
        else ""
    )


def line_item(line: str, data: dict[str, Any]) -> Item:
    """Return an item with its line. Names and types may contain line breaks; the line may not."""
    return Item(" ".join(line.splitlines()), data)


def one_line(text: str) -> str:
    """Return the text without line breaks, so that stored text cannot look like a new line of the reply."""
    return " ".join(text.split())


def _short(text: str | None) -> str:
    text = one_line(text or "")
    return (
        text if len(text) <= _MAX_DIFFERENCE_LETTERS else text[: _MAX_DIFFERENCE_LETTERS - 1] + "…"
    )


def _without_blanks(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value not in ("", [], None)}
