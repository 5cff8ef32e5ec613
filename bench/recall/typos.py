"""The command `python -m bench.recall.typos PATH`: how many typing mistakes in words of a store are
repaired.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bench.recall.questions import Case
from bench.recall.sets import load_cases
from bench.recall.variants import mistype_word
from polymnia.engine.graph import entities
from polymnia.engine.memory import Memory
from polymnia.engine.recall.spelling import repair_spelling
from polymnia.model import EntityDraft
from polymnia.search.terms import STOP_WORDS, stem, words_of
from polymnia.stores import open_store
from polymnia.stores.contract import Reader

ME = "bench"
_SEED = 11
_MIN_LETTERS = 4


class Repairs(Struct, frozen=True):
    """How many mistyped words there were, how many were repaired, changed to a wrong word, and left
    as they were.
    """

    typed: int = 0
    repaired: int = 0
    wrong: int = 0

    def __add__(self, other: "Repairs") -> "Repairs":
        return Repairs(
            self.typed + other.typed, self.repaired + other.repaired, self.wrong + other.wrong
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many mistakes are repaired."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall.typos", description="Typing mistakes repaired."
    )
    parser.add_argument("path", type=Path, help="as for `python -m bench.recall`")
    parser.add_argument(
        "--words", type=int, default=500, metavar="N", help="of each memory (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    chance = random.Random(_SEED)
    total = Repairs()
    for case in load_cases(options.path):
        total += _measure_case(case, options.words, chance)
    left = total.typed - total.repaired - total.wrong
    share = 100 * total.repaired / max(1, total.typed)
    print(
        f"{total.typed} words with one mistake: {share:.1f} % repaired, {total.wrong} wrongly, "
        f"{left} left as they were"
    )
    return 0


def measure(read: Reader, words: Sequence[str], chance: random.Random) -> Repairs:
    """Mistype each word once and ask for its repair.

    A word with the same stem counts as repaired.
    """
    found = Repairs()
    for word in words:
        typed = mistype_word(word, chance)
        if typed != word:
            meant = repair_spelling(read, typed)[1].get(typed, typed)
            right = stem(meant) == stem(word)
            found += Repairs(1, int(right), int(not right and meant != typed))
    return found


def _measure_case(case: Case, count: int, chance: random.Random) -> Repairs:
    texts: dict[str, list[str]] = {}
    for told in case.told:
        texts.setdefault(told.entity, []).append(told.text)
    words = sorted(
        {word for told in case.told for word in words_of(told.text) if _is_measured(word)}
    )
    store = open_store("memory:")
    memory = Memory(store)
    entities.create(
        memory, [EntityDraft(name, case.kind, tuple(each)) for name, each in texts.items()], by=ME
    )
    with memory.reading() as read:
        found = measure(read, chance.sample(words, min(count, len(words))), chance)
    store.close()
    return found


def _is_measured(word: str) -> bool:
    return (
        len(word) >= _MIN_LETTERS and word.isascii() and word.isalpha() and word not in STOP_WORDS
    )


if __name__ == "__main__":
    sys.exit(main())
