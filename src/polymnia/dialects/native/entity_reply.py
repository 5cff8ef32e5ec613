"""The entities of a reply to `recall`: their facts, the rest of the first ones, and relations."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from polymnia.dialects.native.grouping import (
    BEST_EXCERPT,
    EXCERPT,
    MAX_SHOWN_CHARACTERS,
    Line,
    entity_groups,
    excerpt,
    fit_lines,
    head_of,
    relation_texts,
    usual,
)
from polymnia.dialects.native.listing import MAX_LISTED
from polymnia.dialects.native.marks import mark_files, mark_outdated, mark_replaced, successors_of
from polymnia.dialects.native.replies import prose
from polymnia.dialects.native.scope import Place
from polymnia.dialects.native.shapes import Recall
from polymnia.engine.history import changes as history
from polymnia.model import (
    Author,
    Entity,
    Hit,
    Passage,
    Relation,
    Signals,
    Within,
    drop_expired_facts,
)
from polymnia.search.tokens import count_tokens

# Room for what follows the facts: relations and remarks.
FACTS_TAIL_TOKENS = 40
MAX_LISTED_CHARACTERS = 200
# The entities that are shown whole if they have few facts and a hit with this share of the best
# score.
MAX_WHOLE_ENTITIES, MAX_WHOLE_FACTS, WHOLE_SCORE_SHARE = 3, 8, 0.6
# What is said of an entity instead of its newest fact.
_EXPIRED = "all its facts expired; open shows them"
PlacedHit = tuple[Place, Hit]
# By workspace and entity.
Relations = dict[tuple[str, str], list[Relation]]
# By workspace and passage.
Authors = dict[str, dict[tuple[str, int], Author]]


def show_entities(
    arguments: Recall,
    hits: list[PlacedHit],
    ranked: list[PlacedHit],
    within: Within | None,
    together: Callable[..., list[Any]],
    limit: int,
    *,
    is_list: bool,
) -> tuple[str, list[str], list[Line], list[Line]]:
    """Return the head line, the texts, the lines that might be shown, and those that are.

    The first entities are shown whole, unless the arguments say how many facts to show.
    """
    hits = with_newest_facts(hits)
    chosen = [] if arguments.limit else hits[:limit]
    owners = [(place, hit.passage.entity) for place, hit in hits]
    authors, successors, (few, relations, counts) = together(
        partial(authors_of, hits),
        partial(successors_of, owners),
        partial(_look_beside, chosen, together, is_list=is_list),
    )
    whole = [] if is_list else _facts_of(few, within)
    hits = without_repeats([*hits[:limit], *whole, *hits[limit:]])
    lines = lines_of(hits, authors, MAX_LISTED_CHARACTERS if is_list else MAX_SHOWN_CHARACTERS)
    common = usual(lines)
    head = head_of(*common)
    budget = arguments.max_tokens - count_tokens(head) - FACTS_TAIL_TOKENS
    shown = fit_lines(lines, budget, limit + len(whole))
    shown, outlines, authors = together(
        partial(mark_replaced, shown), partial(_outlines_of, shown), partial(authors_of, whole)
    )
    shown = mark_files(mark_outdated(_with_authors(shown, authors), successors))
    best = _related_subject(ranked, shown)
    related = {}
    for subject, own in relations.items():
        # A list gets the relations of its to-dos, which say who has which.
        if not is_list or subject == best or (subject in outlines and outlines[subject].status):
            related[subject] = relation_texts(subject[1], own, arguments.query, limit=5)
    left_out = dict(counts)
    for line in shown:
        if line.subject in left_out and line.passage.ordinal > 0:
            left_out[line.subject] -= 1
    return head, entity_groups(shown, common, outlines, related, left_out), lines, shown


def _look_beside(
    hits: list[PlacedHit], together: Callable[..., list[Any]], *, is_list: bool
) -> tuple[list[tuple[Place, list[str]]], Relations, Counter[tuple[str, str]]]:
    """Return the entities to show whole, the relations of the first, and how many facts all have.

    The fact that decides often stands beside the one that has the words of the question.
    """
    best_score = max((hit.score for _, hit in hits), default=0.0)
    first: dict[tuple[str, str], Place] = {}
    for place, hit in hits:
        is_near = hit.score >= WHOLE_SCORE_SHARE * best_score
        if hit.passage.kind != "note" and (is_near or is_list):
            first.setdefault((place.name, hit.passage.entity), place)
    subjects = list(first)[: MAX_LISTED if is_list else MAX_WHOLE_ENTITIES]
    found = Counter((place.name, hit.passage.entity) for place, hit in hits)
    counts: Counter[tuple[str, str]] = Counter()
    few = []
    relations: Relations = {}
    for place in {place.name: place for place, _ in hits}.values():
        names = [entity for name, entity in subjects if name == place.name]
        present = {entity for name, entity in found if name == place.name}
        with place.memory.reading() as reader:
            sizes, touching = together(
                partial(reader.fact_counts, present), partial(reader.relations, names)
            )
        whole = []
        for name in [*names, *sorted(present.difference(names))]:
            size = counts[place.name, name] = sizes.get(name, 0)
            is_nearly_whole = 3 * found[place.name, name] >= 2 * size
            if size <= MAX_WHOLE_FACTS and (name in names or is_nearly_whole):
                whole.append(name)
        few.append((place, whole))
        for relation in touching:
            for end in set(relation.ends).intersection(names):
                relations.setdefault((place.name, end), []).append(relation)
    return few, relations, counts


def _facts_of(few: list[tuple[Place, list[str]]], within: Within | None) -> list[PlacedHit]:
    """Return the facts of entities that are shown whole, as far as a filter allows."""
    facts = []
    for place, names in few:
        with place.memory.reading() as reader:
            entities = drop_expired_facts(reader.entities(names)) if names else []
        for entity in entities:
            for fact in entity.facts:
                passage = Passage.of(entity, fact)
                if within is None or within.has(passage):
                    facts.append((place, Hit(passage, 0.0, "entity", Signals())))
    return facts


def _with_authors(lines: list[Line], authors: Authors) -> list[Line]:
    """Return the lines, with these authors added where one is missing."""
    signed = []
    for line in lines:
        if line.author is None:
            line = replace(line, author=authors.get(line.place.name, {}).get(line.passage.key))
        signed.append(line)
    return signed


def _related_subject(ranked: list[PlacedHit], shown: list[Line]) -> tuple[str, str] | None:
    """Return the entity that the question names, or the best one."""
    naming: dict[tuple[str, str], float] = {}
    for place, hit in ranked:
        subject = (place.name, hit.passage.entity)
        naming[subject] = max(hit.signals.entity, naming.get(subject, 0.0))
    subjects = [line.subject for line in shown]
    return max(subjects, key=lambda subject: naming.get(subject, 0.0), default=None)


def _outlines_of(shown: list[Line]) -> dict[tuple[str, str], Entity]:
    """Return the entities without their facts, by workspace and name."""
    outlines = {}
    for place in {line.place.name: line.place for line in shown}.values():
        names = {line.passage.entity for line in shown if line.place.name == place.name}
        with place.memory.reading() as reader:
            for entity in reader.outlines(names):
                outlines[place.name, entity.name] = entity
    return outlines


def lines_of(
    hits: list[PlacedHit], authors: Authors, max_characters: int | None = None
) -> list[Line]:
    """Return what may be shown, best first: texts and authors. Turns are never excerpts."""
    passages_shown: Counter[tuple[str, str]] = Counter()
    lines = []
    for number, (place, hit) in enumerate(hits):
        passage = hit.passage
        text = prose(passage.text)
        if len(text) > MAX_SHOWN_CHARACTERS and max_characters is not None:
            text = excerpt(text, hit.excerpt, BEST_EXCERPT if number == 0 else EXCERPT)
        elif len(text) > (max_characters or MAX_SHOWN_CHARACTERS):
            text = text[: (max_characters or MAX_SHOWN_CHARACTERS) - 1].rstrip() + "…"
        if len(passage.text) > MAX_SHOWN_CHARACTERS:
            passages_shown[place.name, passage.entity] += 1
            if passages_shown[place.name, passage.entity] > 2:
                continue  # passages of one document would crowd out other facts
        author = authors.get(place.name, {}).get(passage.key)
        lines.append(Line(place, passage, text, author))
    return lines


def authors_of(hits: list[PlacedHit]) -> dict[str, dict[tuple[str, int], Author]]:
    """Return the authors of the passages, by workspace and key."""
    authors = {}
    for place in {place.name: place for place, _ in hits}.values():
        keys = [hit.passage.key for owner, hit in hits if owner.name == place.name]
        authors[place.name] = history.authors(place.memory, keys)
    return authors


def without_repeats(hits: list[PlacedHit]) -> list[PlacedHit]:
    """Return the hits, each passage once, at its first place."""
    first: dict[tuple[str, tuple[str, int]], PlacedHit] = {}
    for place, hit in hits:
        first.setdefault((place.name, hit.passage.key), (place, hit))
    return list(first.values())


def with_newest_facts(hits: list[PlacedHit]) -> list[PlacedHit]:
    """Return the hits; one on a bare name stands for the entity's newest fact.

    It is left out if the entity has a hit of its own, or if all its facts expired; if that is the
    only hit, it says so.
    """
    found = {
        (place.name, hit.passage.entity) for place, hit in hits if hit.passage.kind != "entity"
    }
    shown, expired = [], []
    for place, hit in hits:
        card = hit.passage
        if card.kind != "entity" or card.text:
            shown.append((place, hit))
        elif (place.name, card.entity) not in found:
            with place.memory.reading() as read:
                named = read.entities([card.entity])
            living = drop_expired_facts(named)
            if living:
                card = newest_passages(living[0], 1)[0]
            elif named:
                card = replace(card, text=_EXPIRED)
                expired.append((place, replace(hit, passage=card)))
                continue
            shown.append((place, replace(hit, passage=card)))
    return shown or expired[:1]


def newest_passages(entity: Entity, count: int, within: Within | None = None) -> list[Passage]:
    """Return the newest facts of an entity that a filter allows.

    Without a filter, return its card if it has none.
    """
    if not entity.facts and within is None:
        return [Passage(entity.name, entity.type, 0, entity.summary or "", tags=entity.tags)]
    passages = [Passage.of(entity, fact) for fact in entity.facts]
    if within is not None:
        passages = [passage for passage in passages if within.has(passage)]
    return passages[-count:]
