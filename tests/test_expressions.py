"""No regular expression of the package takes quadratic time for a long text."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from time import process_time

import polymnia

LETTERS = 8_000
# Repeated, one of these is what most expressions look for or skip.
UNITS = (
    "a",
    " ",
    "\n",
    "1 ",
    "a-",
    "- ",
    "`a",
    '"',
    "\\",
    "[[",
    "[[a|",
    "a.",
    "(",
    "{",
    "</",
    "://",
)
# Follow a part of the expression itself.
TAILS = ("", " ", "-")


def searches() -> Iterator[tuple[str, re.Pattern[str], Callable[[str], object]]]:
    """Yield each expression that a module compiles, and each way in which the module uses it."""
    package = Path(polymnia.__file__).parent
    for path in sorted(package.rglob("*.py")):
        source = path.read_text("utf-8")
        if "= re.compile(" not in source:
            continue
        tree = ast.parse(source)
        module = import_module(".".join(path.relative_to(package.parent).with_suffix("").parts))
        uses = {
            (node.value.id, node.attr)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for name, method in sorted(uses):
            pattern = getattr(module, name, None)
            if not isinstance(pattern, re.Pattern) or isinstance(pattern.pattern, bytes):
                continue
            if method in ("match", "search", "fullmatch", "split", "findall"):
                yield f"{module.__name__}.{name}.{method}", pattern, getattr(pattern, method)
            elif method in ("sub", "finditer"):
                yield f"{module.__name__}.{name}.{method}", pattern, partial(pattern.sub, "")


def cpu(search: Callable[[str], object], unit: str, letters: int) -> float:
    text = (unit * letters)[:letters] + "!\n"
    start = process_time()
    search(text)
    return process_time() - start


def is_quadratic(search: Callable[[str], object], unit: str) -> bool:
    """Return True if four times the letters take much more than four times the work."""
    if cpu(search, unit, LETTERS) < 0.004:
        return False
    long = min(cpu(search, unit, LETTERS) for _ in range(3))
    short = min(cpu(search, unit, LETTERS // 4) for _ in range(3))
    return long > 0.004 and long > 8 * short


def units_for(pattern: re.Pattern[str]) -> set[str]:
    without_classes = re.sub(r"\\[A-Za-z]", " ", pattern.pattern)
    parts = set(re.findall(r"[A-Za-z]{2,}|[^\w\s]", without_classes))
    return {*UNITS, *(part + tail for part in parts for tail in TAILS)}


def test_the_work_of_every_expression_grows_with_the_text_only() -> None:
    found = list(searches())
    assert len(found) > 60
    slow = [
        f"{name} with {unit!r}"
        for name, pattern, search in found
        for unit in sorted(units_for(pattern))
        if is_quadratic(search, unit)
    ]
    assert slow == []


def test_a_quadratic_expression_is_noticed() -> None:
    pattern = re.compile(r"\beyJ[A-Za-z0-9_\-]{10,}\.")
    assert any(is_quadratic(pattern.search, unit) for unit in units_for(pattern))
