"""Fill a memory with what a case tells, and ask it a question."""

from collections.abc import Mapping, Sequence

from bench.recall.measures import DEPTHS
from bench.recall.questions import Case, Place, Told
from polymnia.engine.graph import entities, facts
from polymnia.engine.memory import Memory
from polymnia.engine.recall.passages import recall
from polymnia.model import EntityDraft, FactAddition

_AUTHOR = "bench"
# A busy machine must not turn a question by meaning into one by words.
_TIMEOUT_S = 60.0


def load_case(memory: Memory, case: Case) -> dict[Place, str]:
    """Write what a case tells; return the labels of the observations."""
    names = list(dict.fromkeys(told.entity for told in case.told))
    entities.create(memory, [EntityDraft(name, case.kind) for name in names], by=_AUTHOR)
    labels = {}
    for group in _together(case.told):
        added = facts.add(
            memory,
            [FactAddition(told.entity, (told.text,), told.valid_at) for told in group],
            by=_AUTHOR,
            skip_repeats=False,
        )
        for told, noted in zip(group, added, strict=True):
            labels[noted.entity, noted.facts[0].ordinal] = told.label
    return labels


def rank(
    memory: Memory, question: str, labels: Mapping[Place, str], *, also: Sequence[str] = ()
) -> list[str]:
    """Return the labels of what the memory recalls, best first."""
    hits = recall(memory, question, also=also, limit=DEPTHS[-1], timeout=_TIMEOUT_S).hits
    return [labels.get(hit.passage.key, "") for hit in hits]


def _together(told: Sequence[Told]) -> list[list[Told]]:
    """Group what has the same time, in order, to write it at once."""
    groups: list[list[Told]] = []
    for item in told:
        if not groups or groups[-1][-1].valid_at != item.valid_at:
            groups.append([])
        groups[-1].append(item)
    return groups
