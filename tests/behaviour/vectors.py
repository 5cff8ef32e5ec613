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
    rows = [
        (passage, pack(f"<{dimension}f", *by_text[text]))
        for passage, text in waiting
        if text in by_text
    ]
    memory.store.vectors.put(model, rows, perspective=perspective)
