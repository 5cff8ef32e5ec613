"""The briefing of a session from the memories of its project and its user, in bounded tokens."""

from contextlib import closing, suppress
from pathlib import Path

from polymnia.embedders.base import NONE, missing_package
from polymnia.embedders.process import ProcessLost, can_share, start_process
from polymnia.engine.facts.briefing import DEFAULT_TOKENS, brief_session
from polymnia.engine.facts.briefing_text import briefing_text as session_text
from polymnia.engine.facts.briefing_text import tokens_for_sections
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import Workspaces, find_project, open_workspaces, session_workspaces
from polymnia.errors import StoreOutdated, WorkspaceArchived, WorkspaceNotFound
from polymnia.hooks.session import ACTOR
from polymnia.search.tokens import count_tokens
from polymnia.settings import Settings, runtime_directory
from polymnia.stores.open import store_exists

# Whose tools the agent finds more with.
_HEADING = "Polymnia, your long-term memory; `recall` finds more."


def briefing_text(settings: Settings, directory: Path) -> str:
    """Return what to know when a session starts in a directory; empty if nothing is stored.

    Create nothing. Raise StoreError.
    """
    if not store_exists(settings.store):
        return ""
    try:
        return _brief(settings, directory, read_only=True)
    except StoreOutdated:
        if settings.read_only:
            raise
        # Otherwise hooks would say nothing after an upgrade until the first write.
        return _brief(settings, directory, read_only=False)


def _brief(settings: Settings, directory: Path, *, read_only: bool) -> str:
    opened = open_workspaces(settings.store, settings.workspace, read_only=read_only)
    with closing(opened) as workspaces:
        names = session_workspaces(workspaces, settings.workspace, directory)
        memories = _existing_memories(workspaces, names)
        budget = tokens_for_sections(DEFAULT_TOKENS - count_tokens(_HEADING))
        # Checkpoints end a session, so what others wrote since the last one is news.
        session = brief_session(memories, by=ACTOR, max_tokens=budget, root=find_project(directory))
    if not session.sections:
        return ""
    if settings.share_embedder and settings.embedder != NONE:
        # The first question of the session then finds the model loaded.
        with suppress(ProcessLost, OSError):
            if can_share(settings.embedder) and not missing_package(settings.embedder):
                start_process(settings.embedder, runtime_directory())
    return f"{_HEADING}\n{session_text(session, [name for name, _ in memories])}"


def _existing_memories(workspaces: Workspaces, names: list[str]) -> list[tuple[str, Memory]]:
    memories = []
    for name in names:
        try:
            memories.append((name, workspaces.memory(name)))
        except (WorkspaceNotFound, WorkspaceArchived):
            continue
    return memories
