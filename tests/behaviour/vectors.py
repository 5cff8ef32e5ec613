"""Give entities vectors of the test's choice."""

from collections.abc import Mapping, Sequence
from struct import pack

from polymnia.engine.memory import Memory
from polymnia.stores.contract import TEXT

Vector = Sequence[float]


def put_vectors(
    memory: Memory, by_text: Mapping[str, Vector], *, perspective: str = TEXT, url: str = "local"
) -> None:
    """Store a vector for each observation with one of the texts."""
    dimension = len(next(iter(by_text.values())))
    model = memory.store.vectors.add_model(f"test/{url}/{dimension}", url, dimension).number
    with memory.reading() as read:
        waiting = read.vectors.pending(model, 1_000_000, perspective=perspective)
    rows = []
    for passage, named_text in waiting:
        _, _, own_text = named_text.partition(": ")
        vector = by_text.get(named_text) or by_text.get(own_text)
        if vector is not None:
            rows.append((passage, pack(f"<{dimension}f", *vector)))
    memory.store.vectors.put(model, rows, perspective=perspective)
