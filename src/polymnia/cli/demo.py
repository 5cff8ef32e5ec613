"""`polymnia demo`: a tour of an invented memory, which is deleted afterwards.

The pictures in docs/ui.md and the tests of the web interface show the same memory.
"""

import argparse
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from polymnia.cli.common import Subparsers
from polymnia.cli.serve import serve_ui
from polymnia.engine import notes
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.engine.graph import entities, facts, relations
from polymnia.engine.history.changes import latest
from polymnia.engine.memory import Memory, Transaction
from polymnia.engine.transfer.intake import take_in
from polymnia.engine.workspaces import open_workspaces
from polymnia.errors import EmbedderError
from polymnia.model import Entity, EntityDraft, Fact, FactAddition, Note, Relation
from polymnia.settings import Settings
from polymnia.workspace_choice import open_workspace

if TYPE_CHECKING:
    from polymnia.stores.contract import Store

# The workspace that the tour and the pictures show.
MAIN = "harbour"
_CLAUDE = "claude-code (token mara-laptop)"
_CURSOR = "cursor (token tomas)"
_CODEX = "codex-cli (token ci-agent)"

# What the tour says, and the command that it runs then.
_REMEMBERING = (
    "Agents remember facts. You can do it as well:",
    ["remember", "Ines Duarte", "prefers tea to coffee"],
)
_LOOKING = (
    (
        "A question needs none of the words of the answer:",
        ["search", "favourite hot drink", "--limit", "1"],
    ),
    ("Here is everything about one person:", ["show", "Ines Duarte"]),
    ("Every change has an author:", ["history", "Ines Duarte"]),
)

_Changes = Iterator[tuple[float, Callable[[], object]]]


def add_demo(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "demo",
        help="show a memory at work",
        description="Fill a memory in a temporary directory with the facts of an invented team, "
        "take a tour of it, and serve its web interface until Ctrl-C. It reads and changes nothing "
        "of yours. Without a terminal it ends after the tour.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--ui", action="store_true", help="open the web interface in the browser")
    which.add_argument("--no-ui", action="store_true", help="end after the tour")


def run_demo(settings: Settings, options: argparse.Namespace) -> int:
    """Take the tour, then serve the web interface if there is a browser."""
    is_served = options.ui or (sys.stdout.isatty() and not options.no_ui)
    with TemporaryDirectory(prefix="polymnia-demo-") as directory:
        fill(Path(directory))
        # Nothing of the user's settings: not their store, tokens, backups or embedder.
        own = Settings(store=f"{directory}/", workspace=MAIN, log_level="error")
        print("This is the memory of an invented team. It is deleted when the demo ends.")
        _show_step(own, *_REMEMBERING)
        # Embed the memory, as a server does in the background.
        with open_workspace(own, by_meaning=True) as workspace:
            meaning, store = workspace.memory.meaning, workspace.memory.store
            try:
                if meaning is not None:
                    meaning.index(store)
            except EmbedderError:
                print("(Without the extra `semantic`, searches use words alone.)")
        for sentence, words in _LOOKING:
            _show_step(own, sentence, words)
        with open_workspace(own, read_only=True) as workspace:
            (change,) = latest(workspace.memory, limit=1).changes
        _show_step(own, "And every change can be undone:", ["undo", f"{MAIN}:{change.id}"])
        print(
            "\nNext: `polymnia install CLIENT` adds a memory to your agent, `polymnia remember NAME"
        )
        print("FACT` fills yours by hand, and `polymnia ui` shows it.")
        if is_served:
            print("\nThe same memory in the web interface:", flush=True)
            serve_ui(own, opens_browser=options.ui)
        else:
            print("`polymnia demo --ui` opens the web interface of this one.")
    return 0


def _show_step(settings: Settings, sentence: str, words: list[str]) -> None:
    """Show a command as a user would type it, and run it on the memory of the demo."""
    from polymnia.cli.main import build_parser

    print(f"\n{sentence}\n\n$ polymnia {shlex.join(words)}", flush=True)
    options = build_parser(words[0]).parse_args(words)
    options.run(settings, options)


def fill(directory: Path) -> None:
    """Create the workspaces of the demo in a data directory."""
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    with closing(open_workspaces(f"{directory}/")) as workspaces:
        workspaces.create(MAIN, "what the agents of the Harbour team remember")
        memory = _PastMemory(workspaces.memory(MAIN).store)
        changes = [*_facts(memory, content), *_corrections(memory)]
        changes.sort(key=lambda change: -change[0])
        for hours, change in changes:
            memory.move_to(hours)
            change()
        for name, titles in content["small"].items():
            workspaces.create(name)
            small = _PastMemory(workspaces.memory(name).store)
            for number, title in enumerate(titles):
                small.move_to(300 - 50 * number)
                draft = EntityDraft(title, "concept", (f"the note number {number + 1}",))
                entities.create(small, [draft], by=_CLAUDE)
        workspaces.archive("old-site")


class _PastMemory(Memory):
    """A memory whose changes happened some hours ago."""

    def __init__(self, store: "Store") -> None:
        super().__init__(store)
        self._at = 0

    def move_to(self, hours: float) -> None:
        moment = datetime.now(UTC) - timedelta(hours=hours)
        self._at = int(moment.timestamp() * 1_000_000)

    @contextmanager
    def writing(self, operation: str, by: str) -> Iterator[Transaction]:
        with super().writing(operation, by) as transaction:
            transaction.decided_at = self._at
            yield transaction


def _facts(memory: Memory, content: dict[str, Any]) -> _Changes:
    """Yield how many hours ago each fact was written, and what writes it."""
    for group in content["entities"]:
        for number, entity in enumerate(group["named"]):
            draft = EntityDraft(
                entity["name"], entity["type"], tuple(entity["facts"]), tags=tuple(entity["tags"])
            )
            create = partial(entities.create, memory, [draft], by=group["by"])
            yield group["hours"] - number / 60, create
    for group in content["relations"]:
        links = [Relation(*key) for key in group["keys"]]
        yield group["hours"], partial(relations.create, memory, links, by=group["by"])
    for addition in content["additions"]:
        drafts = [FactAddition(addition["entity"], (addition["fact"],))]
        add = partial(facts.add, memory, drafts, by=addition["by"], skip_repeats=True)
        yield addition["hours"], add
    pages = [
        Entity(name, "page", (Fact(1, text),), "", 2) for name, text in content["wiki"].items()
    ]
    yield 160, partial(take_in, memory, pages, by="polymnia import")


def _corrections(memory: Memory) -> _Changes:
    """Yield changes of other kinds, so that the history has all of them."""
    summary = "Plans berths for small ports; the backend is Python on PostgreSQL."
    yield 200, partial(revise, memory, "Harbour", Revision(summary=summary), by=_CLAUDE)
    edit = Edit(
        "its cache is filled at 03:10 UTC",
        "its cache is filled at 02:40 UTC, before the billing run",
    )
    yield 30, partial(revise, memory, "tide-forecast", Revision(replace=(edit,)), by=_CURSOR)
    scratch = EntityDraft("tmp scratch", "concept", ("delete me",))
    yield 28.1, partial(entities.create, memory, [scratch], by=_CODEX)
    yield 28, partial(entities.delete, memory, ["tmp scratch"], by=_CODEX)
    text = "Drain: pause billing-worker, wait until the queue is empty, then migrate."
    note = Note("runbook/billing-queue", text, tags=("runbook",))
    yield 27, partial(notes.commit, memory, note, by=_CURSOR)
