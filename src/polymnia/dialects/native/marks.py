"""What `recall` says about a fact besides its text: that it is outdated or disputed."""

from collections.abc import Sequence
from itertools import combinations

from msgspec.structs import replace

from polymnia.dialects.native.grouping import DAY, Line, known_since
from polymnia.dialects.native.replies import cut_text
from polymnia.dialects.native.scope import Place
from polymnia.engine.curation.contradictions import describe_difference
from polymnia.engine.facts.work_tree import remarks_on_files
from polymnia.engine.graph.relations import find_successors
from polymnia.engine.history.changes import client_label, restored_facts, superseded_facts
from polymnia.search.terms import one_line, terms_of
from polymnia.search.times import day_name
from polymnia.stores.clock import now_us

# The length of the text that a fact replaced.
MAX_FORMER_CHARACTERS = 80


def mark_outdated(lines: list[Line], successors: dict[tuple[str, str], str]) -> list[Line]:
    """Return the lines with notes on newer values, disagreements and superseded entities.

    What is superseded follows what is shown in its place.
    """
    by_subject: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.passage.ordinal > 0:
            by_subject.setdefault(line.subject, []).append(line)
    notes: dict[tuple[str, str, int], str] = {}
    restored: dict[tuple[str, str, int], int] | None = None
    for own in by_subject.values():
        own.sort(key=lambda line: (known_since(line), line.passage.ordinal))
        for older, newer in combinations(own, 2):
            if not _is_changed_by(older, newer):
                continue
            if restored is None:
                restored = {
                    (place.name, *key): at
                    for place in {line.place.name: line.place for line in lines}.values()
                    for key, at in restored_facts(place.memory).items()
                }
            if restored.get(older.key, 0) > known_since(newer):
                older, newer = newer, older  # an undo knew the newer one
            if _is_dispute(older, newer):
                notes[older.key] = f"disagrees with #{newer.passage.ordinal}"
                notes[newer.key] = f"disagrees with #{older.passage.ordinal}"
            elif newer.passage.valid_at > now_us():
                notes[older.key] = f"until {day_name(newer.passage.valid_at)}"
            else:
                notes[older.key] = f"newer: #{newer.passage.ordinal}"
    marked = []
    for line in lines:
        if line.passage.ordinal > 0 and line.passage.expires:
            notes[line.key] = f"until {day_name(line.passage.expires)}"
        if line.key in notes:
            line = replace(line, notes=(*line.notes, notes[line.key]))
        marked.append(line)
    subjects = {line.subject for line in lines}

    def is_superseded(line: Line) -> bool:
        return (line.place.name, successors.get(line.subject, "")) in subjects

    return sorted(mark_superseded(marked, successors), key=is_superseded)


def _is_changed_by(older: Line, newer: Line) -> bool:
    """Return True if a later call stored a fact that contradicts the older one."""
    one, two = older.passage, newer.passage
    # What one call stored are steps or parts. An import stores facts of many times in one change,
    # so their times must agree too; the facts of one call are a microsecond apart.
    is_one_change = (
        older.author is not None
        and newer.author is not None
        and older.author.change == newer.author.change
    )
    is_one_time = abs(one.created_at - two.created_at) < 1_000_000 and one.valid_at == two.valid_at
    if is_one_change and is_one_time:
        return False
    return bool(describe_difference(one.text, two.text, terms_of(one.entity)))


def _is_dispute(older: Line, newer: Line) -> bool:
    """Return True if both facts are for one day, or two clients wrote them on one."""
    if older.passage.valid_at and older.passage.valid_at == newer.passage.valid_at:
        return True
    if older.author is None or newer.author is None:
        return False
    is_one_day = known_since(older) // DAY == known_since(newer) // DAY
    return is_one_day and client_label(older.author.actor) != client_label(newer.author.actor)


def mark_superseded(lines: list[Line], successors: dict[tuple[str, str], str]) -> list[Line]:
    """Return the lines, with a note on those of superseded entities."""
    marked = []
    for line in lines:
        successor = successors.get(line.subject)
        if successor:
            note = f"superseded by {one_line(successor)}"
            line = replace(line, notes=(*line.notes, note))
        marked.append(line)
    return marked


def successors_of(named: Sequence[tuple[Place, str]]) -> dict[tuple[str, str], str]:
    """Return the entities that supersede these, by workspace and name."""
    successors = {}
    for place in {place.name: place for place, _ in named}.values():
        names = {name for owner, name in named if owner.name == place.name}
        with place.memory.reading() as reader:
            for name, successor in find_successors(reader, names).items():
                successors[place.name, name] = successor
    return successors


def mark_files(lines: list[Line]) -> list[Line]:
    """Return the lines, with a note on those that name changed or deleted project files."""
    project = [line for line in lines if line.place.root is not None]
    if not project:
        return lines
    facts = [(line.passage.text, line.passage.created_at) for line in project]
    remarks = remarks_on_files(project[0].place.root, facts)
    by_key = {line.key: remark for line, remark in zip(project, remarks, strict=True)}
    marked = []
    for line in lines:
        if by_key.get(line.key):
            line = replace(line, notes=(*line.notes, by_key[line.key]))
        marked.append(line)
    return marked


def mark_replaced(shown: list[Line]) -> list[Line]:
    """Return the lines, with the text that they replaced on those of the best entity."""
    if not shown:
        return []
    best = shown[0]
    former = {}
    for past in superseded_facts(best.place.memory, best.passage.entity):
        former[past.successor] = past.old
    lines = []
    for line in shown:
        older = former.get(line.passage.ordinal)
        if line.subject == best.subject and older is not None:
            texts = [cut_text(older.text, MAX_FORMER_CHARACTERS)]
            if older.ordinal in former:
                texts.append(cut_text(former[older.ordinal].text, MAX_FORMER_CHARACTERS))
            was = f"was: {'; before that: '.join(texts)}"
            line = replace(line, notes=(*line.notes, was))
        lines.append(line)
    return lines
