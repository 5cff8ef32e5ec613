"""Transcripts of coding agents: JSON lines that a program appends while a session lasts.

What people and models said becomes the turns of a conversation. The results of tools, and what
the program itself tells the model, are dropped.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from polymnia.engine.facts.secrets import find_secret
from polymnia.engine.transfer.intake import Item
from polymnia.importers.base import Importer, Report, dicts_in, title_of
from polymnia.importers.conversation import Conversation, Turn, conversation_entity
from polymnia.importers.source import Source, parse_line
from polymnia.model import Entity

_FILES = re.compile(r".*\.jsonl", re.DOTALL)
# What comes before the name of a directory, on any system.
_NAME = re.compile(r"^.*[/\\]", re.DOTALL)


class TranscriptLine(Struct, frozen=True):
    """One line of a transcript: a turn, facts about the session, or a summary.

    `last_turn` names the session that a summary is about by one of its turns; empty means this
    session. The turns of a subagent's session are dropped.
    """

    turn: Turn | None = None
    turn_id: str = ""
    session: str = ""
    started_at: int = 0
    directory: str = ""
    summary: str = ""
    last_turn: str = ""
    is_subagent: bool = False


class Format(Struct, frozen=True):
    """The transcripts of one program: its name, and how its lines are recognized and read."""

    kind: str
    title: str
    is_line: Callable[[dict[str, Any]], bool]
    read_line: Callable[[dict[str, Any]], TranscriptLine | None]


class TranscriptSession:
    """A session as far as its transcript was read.

    The name of its conversation depends on its beginning only. `directory` is where it took place;
    empty if the transcript does not say.
    """

    def __init__(self, form: Format, fallback_id: str) -> None:
        self.turns: list[Turn] = []
        self.conversation: Conversation | None = None
        self.form = form
        self._id = ""
        self._fallback_id = fallback_id
        self.directory = ""
        self._started_at = 0
        self.is_subagent = False
        self._turn_ids: set[str] = set()
        self._summaries: list[TranscriptLine] = []

    def add(self, line: TranscriptLine) -> None:
        """Add a line. A copy of another session has that session's id too, after its own."""
        self.is_subagent = self.is_subagent or (line.is_subagent and not self._id)
        self._id = self._id or line.session
        self._started_at = self._started_at or line.started_at
        self.directory = self.directory or line.directory
        if line.summary:
            self._summaries.append(line)
        if line.turn is None or self.is_subagent:
            return
        self.turns.append(line.turn)
        self._turn_ids.add(line.turn_id)
        if self.conversation is None:
            title = "" if find_secret(line.turn.text) else line.turn.text
            at = self._started_at or line.turn.at
            project = _NAME.sub("", self.directory.rstrip("/\\"))
            self.conversation = Conversation(
                self.form.kind, self._id or self._fallback_id, title_of(title), at, project=project
            )

    def begin_after(self, lines: Iterable[TranscriptLine]) -> None:
        """Learn from lines whose turns are stored which conversation the next turns continue."""
        for line in lines:
            self.add(line)
            if self.conversation is not None or self.is_subagent:
                break
        self.turns.clear()
        self._summaries.clear()

    def take_entity(self, report: Report) -> Entity | None:
        """Return an entity with the turns since the last call; None if there are none."""
        turns, self.turns = self.turns, []
        if self.conversation is None:
            return None
        summary = ""
        for line in self._summaries:
            if not line.last_turn or line.last_turn in self._turn_ids:
                summary = line.summary
        return conversation_entity(replace(self.conversation, summary=summary), turns, report)


def make_importer(form: Format) -> Importer:
    """Return the importer of a program's transcripts: a file, or a folder with many."""

    def recognizes(source: Source) -> bool:
        files_to_try, lines_to_try = 50, 10
        for name in source.matching(_FILES)[:files_to_try]:
            if source.head(name).lstrip()[:1] == b"{":
                values = map(parse_line, islice(source.lines(name), lines_to_try))
                if any(value is not None and form.is_line(value) for value in values):
                    return True
        return False

    def read(source: Source, report: Report) -> Iterator[Item]:
        for _, session in read_sessions(form, source, report):
            entity = session.take_entity(report)
            if entity is not None:
                yield entity

    return Importer(form.kind, form.title, recognizes, read)


def read_sessions(
    form: Format, source: Source, report: Report, skip: Collection[str] = ()
) -> Iterator[tuple[str, TranscriptSession]]:
    """Yield each file and its session. A turn that was copied from another session counts once."""
    ending = ".jsonl"
    seen: set[str] = set()
    for name in report.count_parts(source.matching(_FILES)):
        if name in skip:
            continue
        session = TranscriptSession(form, name.rsplit("/", 1)[-1].removesuffix(ending))
        for line in _read_lines(form, source, name, report):
            if not line.turn_id or line.turn_id not in seen:
                session.add(line)
                seen.add(line.turn_id)
        yield name, session


def joined_texts(content: Any, kinds: tuple[str, ...]) -> str:
    """Return the text of a message: its content, or the blocks of these kinds in it."""
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in dicts_in(content) if block.get("type") in kinds]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def _read_lines(
    form: Format, source: Source, name: str, report: Report
) -> Iterator[TranscriptLine]:
    for number, text in enumerate(source.lines(name), 1):
        if text.isspace():
            continue
        value = parse_line(text)
        place = f"{name}, line {number}"
        if value is None:
            is_whole = text.endswith(b"\n")
            report.drop_part(
                place, "not a JSON object" if is_whole else "the last line is incomplete"
            )
        elif (line := form.read_line(value)) is not None:
            yield line
