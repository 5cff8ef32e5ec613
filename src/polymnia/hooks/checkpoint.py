"""A checkpoint: the new turns of a session become facts of its conversation.

The work is bounded in time. The next event continues from the saved position.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic
from typing import IO

from msgspec.structs import replace

from polymnia.disk.files import map_os_errors
from polymnia.engine.facts.secrets import find_secret
from polymnia.engine.memory import Memory, find_by_name
from polymnia.engine.transfer.intake import take_in
from polymnia.engine.workspaces import create_missing, open_workspaces, workspace_to_write
from polymnia.hooks.positions import Position, Positions
from polymnia.hooks.session import ACTOR
from polymnia.importers import claude_code, codex, copilot, gemini
from polymnia.importers.base import Report, dicts_in, text_of, time_of, title_of
from polymnia.importers.conversation import Conversation, Turn, conversation_entity, name_of
from polymnia.importers.sessions import Format, TranscriptLine, TranscriptSession
from polymnia.importers.source import parse_line
from polymnia.model import Entity
from polymnia.settings import Settings, positions_file

# How much of a transcript becomes one change, and when the rest waits for the next event.
SLICE_BYTES = 1 << 20
MAX_SECONDS = 1.0
_FORMATS = (claude_code.FORMAT, codex.FORMAT, copilot.FORMAT, gemini.FORMAT)


def save_checkpoint(
    settings: Settings, transcript: Path, directory: Path, *, max_seconds: float = MAX_SECONDS
) -> int:
    """Store the new turns of a transcript in the memory of a directory. Return how many there were.

    A turn that seems to contain a secret is dropped unless the setting `secrets` is off: no user
    reads a warning here. A file that is not a transcript is ignored. Raise StoreError.
    """
    form = _find_format(transcript)
    if form is None:
        return 0
    positions, key = Positions(positions_file()), _key(settings.store, transcript)
    position = positions.find(key)
    if position.offset > transcript.stat().st_size:
        position = Position()  # another file took its place
    count, end = 0, monotonic() + max_seconds
    session = TranscriptSession(form, transcript.stem)
    report = _report(settings)
    # Opened when there is something to store, because opening may create it.
    memory: Memory | None = None
    with ExitStack() as stack:
        stack.enter_context(map_os_errors(str(transcript)))
        file = stack.enter_context(transcript.open("rb"))
        session.begin_after(_lines_before(file, form, position.offset))
        is_continued = session.conversation is not None
        file.seek(position.offset)
        for size in _slices(file, session):
            entity = session.take_entity(report)
            if entity is not None and session.conversation is not None:
                memory = memory or _open_memory(settings, directory, stack)
                conversation = session.conversation
                count += _store(memory, conversation, entity, report, is_continued=is_continued)
            position = Position(position.offset + size)
            positions.save(key, position)
            if monotonic() > end:
                break
    return count


def save_turns(settings: Settings, program: str, session: str, data: bytes, directory: Path) -> int:
    """Store the new turns of an event that has all turns of its session. Return their number.

    The position counts the turns that were taken, so that a forgotten one does not come back.
    """
    turns = _turns_in(data)
    positions, key = Positions(positions_file()), _key(settings.store, f"{program}:{session}")
    position = positions.find(key)
    said = [turn for turn in turns if turn.text]
    new = [turn for turn in turns[position.offset :] if turn.text]
    if not new:
        return 0
    first = said[0]
    title = "" if find_secret(first.text) else title_of(first.text)
    conversation = Conversation(program, session, title, first.at, project=directory.name)
    report = _report(settings)
    entity = conversation_entity(conversation, new, report)
    assert entity is not None  # there are turns
    is_continued = len(new) < len(said)
    with ExitStack() as stack:
        memory = _open_memory(settings, directory, stack)
        count = _store(memory, conversation, entity, report, is_continued=is_continued)
    positions.save(key, Position(len(turns)))
    return count


def _store(
    memory: Memory,
    conversation: Conversation,
    entity: Entity,
    report: Report,
    *,
    is_continued: bool,
) -> int:
    """Store the new turns of a conversation, and return their number.

    If it began earlier and is gone, it goes on without its title, which may have been erased.
    """
    item = next(report.screen_items([entity]))
    assert isinstance(item, Entity)
    if is_continued:
        with memory.reading() as read:
            is_gone = not find_by_name(read, [item.name])
        if is_gone:
            item = replace(item, name=name_of(replace(conversation, title="")))
    return take_in(memory, [item], by=ACTOR).facts


def _turns_in(data: bytes) -> list[Turn]:
    """Return the turns that an event has. A turn that was not said has an empty text."""
    speakers = ("user", "assistant")
    fields = parse_line(data)
    turns = []
    for value in dicts_in(fields.get("turns") if fields else None):
        speaker = text_of(value, "speaker")
        text = text_of(value, "text").strip() if speaker in speakers else ""
        turns.append(Turn(speaker, text, time_of(value.get("at"))))
    return turns


def _report(settings: Settings) -> Report:
    """Return a report that drops secrets, because a hook's warning is not read."""
    return Report("off" if settings.secrets == "off" else "refuse")


def _key(store: str, transcript: Path | str) -> str:
    """Return what identifies a transcript in a store, without the password of a URL."""
    key = f"{store} {transcript}".encode(errors="replace")
    if "://" not in store:
        return key.decode()
    from hashlib import sha256  # loads OpenSSL, which most hooks do not need

    return sha256(key).hexdigest()


def _find_format(transcript: Path) -> Format | None:
    """Return the program that wrote the file; None if it is missing or not a transcript."""
    lines_to_try = 10
    if not transcript.is_file():
        return None
    with map_os_errors(str(transcript)), transcript.open("rb") as file:
        for line in [file.readline() for _ in range(lines_to_try)]:
            value = parse_line(line)
            for form in _FORMATS:
                if value is not None and form.is_line(value):
                    return form
    return None


def _lines_before(file: IO[bytes], form: Format, offset: int) -> Iterator[TranscriptLine]:
    """Yield what the lines before the offset say."""
    while file.tell() < offset:
        value = parse_line(file.readline())
        line = form.read_line(value) if value is not None else None
        if line is not None:
            yield line


def _slices(file: IO[bytes], session: TranscriptSession) -> Iterator[int]:
    """Add the lines of the file to the session, slice by slice, and yield their sizes in bytes.

    A last line that is not finished waits for the next checkpoint.
    """
    while lines := [line for line in file.readlines(SLICE_BYTES) if line.endswith(b"\n")]:
        for text in lines:
            value = parse_line(text)
            line = session.form.read_line(value) if value is not None else None
            if line is not None:
                session.add(line)
        yield sum(map(len, lines))


def _open_memory(settings: Settings, directory: Path, stack: ExitStack) -> Memory:
    """Open the memory of the directory's project, or the personal one, for the stack's lifetime."""
    workspaces = stack.enter_context(closing(open_workspaces(settings.store, settings.workspace)))
    name = workspace_to_write(workspaces, settings.workspace, directory)
    if workspaces.sole is None:
        create_missing(workspaces, name)
    return workspaces.memory(name)
