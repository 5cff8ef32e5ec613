"""Words and vectors of very many notes: signs choose what is compared, and it is found as if all had been."""

import random
from itertools import count

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

from polymnia.search.signs import enough  # noqa: E402  # only where numpy is
from polymnia.stores.sqlite.blend import Vectors, Words  # noqa: E402
from tests.search.crowds import Floats, crowd  # noqa: E402

SIZE = 384
COUNT = 3_000
LIMIT = 10


def kept(vectors: Floats, *, exact: int) -> Vectors:
    """Notes from 1 on; the first come alone, so that signs begin amid them."""
    held = Vectors(1, SIZE, exact=exact)
    notes = count(1)
    for some in (vectors[:80], vectors[80:90], vectors[90:]):
        held.add([next(notes) for _ in some], [each.tobytes() for each in some], [1.0] * len(some))
    return held


def words(chance: random.Random, number: int) -> Words:
    """Notes that have the words, of which some have no vector."""
    return [(note, -chance.random()) for note in chance.sample(range(1, COUNT + 100), number)]


@pytest.mark.parametrize("number", [0, 3, 40, 2_000])
def test_the_best_are_those_that_comparing_all_finds(number: int) -> None:
    vectors, questions = crowd(COUNT, SIZE, offset=0.8)
    quick, whole = kept(vectors, exact=85), kept(vectors, exact=COUNT)
    chance = random.Random(number)
    shared = 0
    for question in questions:
        matched = words(chance, number)
        mine, theirs = (held.best(question, matched, None, LIMIT) for held in (quick, whole))
        assert all(theirs[note] == pytest.approx(mine[note]) for note in mine.keys() & theirs.keys())
        shared += len(mine.keys() & theirs.keys())
    assert shared / (LIMIT * len(questions)) >= 0.99


def test_notes_that_have_the_words_are_compared_whatever_their_signs() -> None:
    vectors, questions = crowd(COUNT, SIZE)
    quick, whole = kept(vectors, exact=85), kept(vectors, exact=COUNT)
    farthest = np.argsort(vectors @ questions[0])[:LIMIT] + 1
    matched = [(int(note), -1.0) for note in farthest]
    assert (
        quick.best(questions[0], matched, None, COUNT).items()
        >= whole.best(questions[0], matched, farthest.tolist(), LIMIT).items()
    )


@pytest.mark.parametrize("one_in", [2, 30], ids=["many", "few"])
def test_only_what_is_allowed_is_found(one_in: int) -> None:
    vectors, questions = crowd(COUNT, SIZE)
    quick, whole = kept(vectors, exact=85), kept(vectors, exact=COUNT)
    allowed = set(range(1, COUNT + 1, one_in))
    missed = 0
    for question in questions:
        mine, theirs = (held.best(question, [], allowed, LIMIT) for held in (quick, whole))
        assert mine.keys() <= allowed
        missed += len(theirs.keys() - mine.keys())
    assert missed <= (0.01 * LIMIT * len(questions) if len(allowed) > enough(LIMIT) else 0)


def test_a_vector_that_took_anothers_place_is_found_as_its_own() -> None:
    vectors, _ = crowd(COUNT, SIZE)
    held = kept(vectors, exact=85)
    for row in (7, held.used - 2):
        held.remove(row)
    assert max(held.best(vectors[-1], [], None, LIMIT).items(), key=lambda item: item[1])[0] == COUNT
    assert 8 not in held.best(vectors[7], [], None, LIMIT)
    assert held.best(vectors[7], [(8, -1.0)], None, COUNT)[8] == pytest.approx(0.99)  # the words alone are left to it


def test_among_equals_the_newest_are_found() -> None:
    alike = np.repeat(crowd(1, SIZE)[0], COUNT, axis=0)
    held = kept(alike, exact=COUNT)
    assert sorted(held.best(alike[0], [], None, 3)) == [COUNT - 2, COUNT - 1, COUNT]


def test_where_words_alone_give_more_than_any_vector_could_they_are_found() -> None:
    vectors, questions = crowd(COUNT, SIZE)
    quick, whole = kept(vectors, exact=85), kept(vectors, exact=COUNT)
    without_vector = [(COUNT + number, -1.0) for number in range(1, LIMIT + 1)]
    found = quick.best(questions[0], without_vector, None, LIMIT)
    assert found == whole.best(questions[0], without_vector, None, LIMIT) == {note: 0.99 for note, _ in without_vector}
