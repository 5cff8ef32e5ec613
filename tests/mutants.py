"""Change random places in the code and count how many of the changes the fast tests notice.

    python -m tests.mutants [--count 60] [--seed 40] [--budget 30]

A mutant is a function of `engine`, `dialects`, `mcp` or `stores` with one operator, constant or
condition changed. The tests of a layer are collected once. Each mutant runs in a fork of that
process, where the function's code is replaced, so only tests that call it in their own process can
notice. Tests that name the function or its module come first, and the first failure ends the run.
A mutant that loops or waits until it is stopped is undecided: the machine may have been busy.
"""

import argparse
import ast
import copy
import gc
import os
import random
import resource
import select
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest
from _pytest.main import pytest_runtestloop as run_tests

from tests.groups import UNMARKED

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "polymnia"
# Layer -> the paths whose tests call it in their own process.
TESTS = {
    "engine": ("tests/behaviour", "tests/search"),
    "dialects": ("tests/dialects",),
    "mcp": ("tests/mcp",),
    "stores": ("tests/stores", "tests/directory", "tests/behaviour"),
}
# A mutant that waits is stopped after this long: a busy machine is slow.
MAX_WAIT_S = 900

OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


class Mutant(NamedTuple):
    path: Path
    function: str
    line: int
    change: str
    code: CodeType


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=60, help="mutants in all layers together")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--budget", type=float, default=30, help="CPU seconds of tests per mutant")
    parser.add_argument("--layer", choices=TESTS, action="append")
    options = parser.parse_args()
    layers = options.layer or list(TESTS)
    for layer in layers:
        mutants = choose_mutants(layer, options.count // len(TESTS), options.seed)
        trial = Trial(layer, mutants, options.budget)
        child = os.fork()  # pytest can collect only once in a process
        if child == 0:
            paths = [str(ROOT / path) for path in TESTS[layer]]
            quiet = ["-p", "no:terminal", "-p", "no:cacheprovider", "-s", "-o", "addopts="]
            pytest.main([*quiet, "-m", UNMARKED, *paths], plugins=[trial])
            os._exit(0)
        os.waitpid(child, 0)


def choose_mutants(layer: str, count: int, seed: int) -> list[Mutant]:
    """Return the same mutants of a layer for the same seed and code."""
    chooser = random.Random(f"{layer} {seed}")
    files = sorted((SOURCE / layer).rglob("*.py"))
    places = [
        (path, number) for path in files for number in range(sum(1 for _ in changes_of(path)))
    ]
    chooser.shuffle(places)
    mutants = (mutant_at(path, number) for path, number in places)
    return list(islice(filter(None, mutants), count))


def changes_of(path: Path) -> Iterator[tuple[ast.Module, ast.AST, str]]:
    """Yield the file's tree with one change at a time, the changed node, and what was changed."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    seen: set[int] = set()
    for function in functions:
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            if id(node) in seen:
                continue
            seen.add(id(node))
            before = copy.copy(node.__dict__)
            change = mutate(node)
            if change:
                yield tree, node, change
            node.__dict__.clear()
            node.__dict__.update(before)


def mutate(node: ast.AST) -> str:
    """Change a node in place, and say how. Return an empty text for a node that stays."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITES:
        opposite = OPPOSITES[type(node.ops[0])]
        change = f"{type(node.ops[0]).__name__} -> {opposite.__name__}"
        node.ops = [opposite(), *node.ops[1:]]  # type: ignore[list-item]  # an operator
        return change
    if isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OPPOSITES:
        opposite = OPPOSITES[type(node.op)]
        change = f"{type(node.op).__name__} -> {opposite.__name__}"
        node.op = opposite()  # type: ignore[assignment]  # an operator
        return change
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        number = node.value
        node.value = not number if isinstance(number, bool) else number + 1
        return f"{number} -> {node.value}"
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        ast.fix_missing_locations(node)
        return "condition -> not condition"
    if isinstance(node, ast.Return) and node.value is not None:
        node.value = ast.copy_location(ast.Constant(None), node.value)
        return "return value -> return None"
    return ""


def mutant_at(path: Path, number: int) -> Mutant | None:
    """Return the mutant with the code of the outermost function that is changed.

    Return None if the code is the same, as after a change of an annotation.
    """
    original = compile(ast.parse(path.read_text("utf-8")), str(path), "exec")
    for position, (tree, node, change) in enumerate(changes_of(path)):
        if position != number:
            continue
        mutated = compile(tree, str(path), "exec")
        line = getattr(node, "lineno", 0)
        for before, after in zip(functions_in(original), functions_in(mutated), strict=True):
            if before != after:
                return Mutant(path, after.co_qualname, line, change, after)
        return None
    raise LookupError(number)


def functions_in(code: CodeType) -> list[CodeType]:
    """Return the code of a module's functions and methods, without those inside of functions."""
    found: list[CodeType] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            is_class = not constant.co_flags & 2  # CO_NEWLOCALS
            found += functions_in(constant) if is_class else [constant]
    return found


class Trial:
    """A plugin of pytest that runs the collected tests once for each mutant."""

    def __init__(self, layer: str, mutants: list[Mutant], budget: float) -> None:
        self.layer = layer
        self.mutants = mutants
        self.budget = budget

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # Otherwise each fork would look for the directory of the run again.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # of pytest
        if self._outcome(session, self.mutants[0], is_changed=False) != "survived":
            print(f"{self.layer}: the tests fail without a change", flush=True)
            return True
        outcomes = Counter[str]()
        for mutant in self.mutants:
            outcome = self._outcome(session, mutant)
            outcomes[outcome] += 1
            place = f"{mutant.path.relative_to(SOURCE)}:{mutant.line} {mutant.function}"
            print(f"{outcome:9} {place}: {mutant.change}", flush=True)
        print(
            f"{self.layer}: {outcomes['killed']} killed, {outcomes['survived']} survived, "
            f"{outcomes['undecided']} undecided",
            flush=True,
        )
        return True

    def _outcome(self, session: pytest.Session, mutant: Mutant, *, is_changed: bool = True) -> str:
        child = os.fork()
        if child == 0:
            if is_changed:
                replace_code(mutant)
            os._exit(self._try_mutant(session, mutant))
        ended = os.pidfd_open(child)
        is_ended, _, _ = select.select([ended], [], [], MAX_WAIT_S)
        os.close(ended)
        if not is_ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if not is_ended or code == -signal.SIGXCPU:
            return "undecided"
        return "survived" if code == 0 else "killed"

    def _try_mutant(self, session: pytest.Session, mutant: Mutant) -> int:
        """Return 1 if a test fails."""
        # A fork has used no processor time yet. One test may take a while after the budget.
        limit = int(self.budget * 3) + 60
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        session.items = nearest_first(session.items, mutant)
        session.config.option.maxfail = 1
        end = _processor_seconds() + self.budget

        class Stop:
            def pytest_runtest_logfinish(self) -> None:
                if _processor_seconds() > end:
                    session.shouldstop = "the budget is used up"

        session.config.pluginmanager.register(Stop())
        try:
            run_tests(session)
        except (session.Failed, session.Interrupted):
            pass
        return int(session.testsfailed > 0)


def _processor_seconds() -> float:
    """Return what this process and the programs that it started have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def replace_code(mutant: Mutant) -> None:
    """Give the function the mutant's code, wherever it is bound, also below decorators."""
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            code = thing.__code__
            if code.co_qualname == mutant.function and code.co_filename == str(mutant.path):
                thing.__code__ = mutant.code


def nearest_first(items: list[pytest.Item], mutant: Mutant) -> list[pytest.Item]:
    """Sort tests by whether their file is about the mutant's folder or module, or names them.

    Properties come last: one of them may take as long as a hundred examples.
    """
    name = mutant.function.rpartition(".")[2]
    module, folder = mutant.path.stem, mutant.path.parent.name
    ranks: dict[Path, int] = {}
    for item in items:
        if item.path not in ranks:
            text = item.path.read_text("utf-8")
            is_about = module in item.path.stem or folder in item.path.stem
            ranks[item.path] = (not is_about) + (name not in text) + (module not in text)
            if "subprocess" in text or "Running(" in text:
                ranks[item.path] += 3  # a program that a test starts does not have the change

    def order(item: pytest.Item) -> tuple[bool, int]:
        is_property = hasattr(getattr(item, "obj", None), "hypothesis")
        return is_property, ranks[item.path]

    return sorted(items, key=order)


if __name__ == "__main__":
    main()
