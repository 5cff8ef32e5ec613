"""What `recall` says about a fact besides its text: that it is outdated, disputed, or planned."""

from collections.abc import Sequence

from msgspec.structs import replace

from polymnia.dialects.native.grouping import DAY, Line, known_since
from polymnia.dialects.native.replies import describe_plan
from polymnia.dialects.native.scope import Place
from polymnia.engine.curation.contradictions import differs_in_value
from polymnia.engine.graph.relations import find_successors
from polymnia.engine.history import changes as history
from polymnia.engine.history.changes import client_label
from polymnia.search.hits import is_outdated
from polymnia.search.terms import one_line, terms_of

# The length of the text that a fact replaced.
MAX_FORMER_CHARACTERS = 80
# The facts of one call are a microsecond apart.
_ONE_CALL = 1_000_000


def mark_outdated(lines: list[Line], successors: dict[tuple[str, str], str]) -> list[Line]:
    """Return the lines with notes on newer values, disagreements and superseded entities.

    What is superseded follows what is shown in its place.
    """
    compared = []
    for line in lines:
        notes = _disagreements(line, lines)
        compared.append(replace(line, notes=(*line.notes, *notes)))
    marked = mark_superseded(compared, successors)
    subjects = {line.subject for line in lines}

    def is_superseded(line: Line) -> bool:
        return (line.place.name, successors.get(line.subject, "")) in subjects

    return sorted(marked, key=is_superseded)


def mark_superseded(lines: list[Line], successors: dict[tuple[str, str], str]) -> list[Line]:
    """Return the lines; those of an entity that another one supersedes name that one."""
    marked = []
    for line in lines:
        successor = successors.get(line.subject)
        if successor:
            note = f"superseded by {one_line(successor)}"
            line = replace(line, notes=(*line.notes, note))
        marked.append(line)
    return marked


def successors_of(named: Sequence[tuple[Place, str]]) -> dict[tuple[str, str], str]:
    """Return which of the entities another one supersedes, by workspace and name."""
    successors = {}
    for place in {place.name: place for place, _ in named}.values():
        names = {name for owner, name in named if owner.name == place.name}
        with place.memory.reading() as reader:
            for name, successor in find_successors(reader, names).items():
                successors[place.name, name] = successor
    return successors


def _disagreements(line: Line, lines: list[Line]) -> list[str]:
    """Return notes on facts of the entity that give the same attribute another value."""
    newer, contrary = [], []
    for other in lines:
        fact = other.passage
        is_other = fact.ordinal != line.passage.ordinal and fact.ordinal > 0
        if other.place.name != line.place.name or fact.entity != line.passage.entity:
            continue
        if _were_told_together(line, other):
            continue
        if _is_dispute(line, other):
            contrary.append(fact)
        elif is_outdated(line.passage, fact):
            newer.append(fact)
        elif is_other and not is_outdated(fact, line.passage):
            names = terms_of(fact.entity)
            if line.passage.ordinal > 0 and differs_in_value(line.text, fact.text, names):
                contrary.append(fact)
    if newer:
        newest = max(newer, key=lambda fact: (fact.valid_at or fact.created_at, fact.ordinal))
        return [f"newer: #{newest.ordinal}"]
    return [f"disagrees with #{fact.ordinal}" for fact in contrary[:1]]


def _is_dispute(line: Line, other: Line) -> bool:
    """Return True if two clients gave an attribute two values on one day: neither is newer."""
    if line.author is None or other.author is None:
        return False
    is_one_day = known_since(line) // DAY == known_since(other) // DAY
    if not is_one_day or client_label(line.author.actor) == client_label(other.author.actor):
        return False
    one, two = line.passage, other.passage
    return is_outdated(one, two) or is_outdated(two, one)


def _were_told_together(line: Line, other: Line) -> bool:
    """Return True if one call stored both facts: steps or parts, not two states of one thing.

    An import stores facts of many times in one change, so their times must agree too.
    """
    if line.author is None or other.author is None or line.author.change != other.author.change:
        return False
    one, two = line.passage, other.passage
    is_same_time = abs(one.created_at - two.created_at) < _ONE_CALL
    return is_same_time and one.valid_at == two.valid_at


def mark_replaced(shown: list[Line]) -> list[Line]:
    """Return the lines; those of the best entity say which text they replaced."""
    if not shown:
        return []
    best = shown[0]
    own = [line for line in shown if line.subject == best.subject and line.author is not None]
    changes = {line.author.change for line in own if line.author is not None}
    former = {}
    for past in history.superseded_facts(best.place.memory, best.passage.entity, changes):
        for successor in past.new:
            former[successor.ordinal] = one_line(past.old.text)[:MAX_FORMER_CHARACTERS]
    lines = []
    for line in shown:
        if line.subject == best.subject and line.passage.ordinal in former:
            was = f"was: {former[line.passage.ordinal]}"
            line = replace(line, notes=(*line.notes, was))
        lines.append(line)
    return lines


def plans_of(shown: list[Line]) -> dict[tuple[str, str], list[str]]:
    """Return when entities are due and their status, by workspace and name."""
    plans = {}
    for place in {line.place.name: line.place for line in shown}.values():
        names = {line.passage.entity for line in shown if line.place.name == place.name}
        with place.memory.reading() as reader:
            for entity in reader.outlines(names):
                plans[place.name, entity.name] = describe_plan(entity)
    return plans
