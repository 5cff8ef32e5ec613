"""The memory of the golden examples, and clients that use it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polymnia.dialects import open_dialect
from polymnia.engine.workspaces import open_workspaces
from polymnia.mcp.server import Server
from tests.dialects.conversation import Client

LIMIT = "Batch defer takes at most"
DOCUMENT = (
    " ".join(
        f"Paragraph {number} tells how the queue was designed and what was tried first."
        for number in range(200)
    )
    + " Because while maintaining a large PostgreSQL database RabbitMQ was one more thing to run."
)


@contextmanager
def golden_clients(folder: Path) -> Iterator[tuple[Client, Client]]:
    """Yield two clients of a shop with a memory: claude-code, and codex."""
    workspaces = open_workspaces(f"{folder}/store/")
    server = Server(open_dialect("native"), workspaces, workspace="shop")
    claude, codex = Client("native", server), Client("native", server)
    for client, name in ((claude, "claude-code"), (codex, "codex")):
        client.request(
            "initialize", protocolVersion="2025-11-25", clientInfo={"name": name, "version": "2"}
        )
    _fill(claude, codex)
    yield claude, codex
    workspaces.close()


def _fill(claude: Client, codex: Client) -> None:
    release = "release 3.6.0"
    entities: list[dict[str, Any]] = [
        _entity("Worker", "component", "2020-11-02", "Heartbeat is updated every 10 s"),
        _entity(
            release,
            "milestone",
            "2020-11-10",
            "Due Friday 2020-11-27",
            "Contains batch defer",
            due="2999-12-04",
        ),
        _entity(
            "TODO: fetch_job index", "todo", "2020-11-02", "Add partial index", due="2999-11-20"
        ),
        _entity("TODO: migration docs", "todo", "2020-11-02", "Owner Deniz", due="2020-11-13"),
        _entity(
            "ADR-3 batch size",
            "decision",
            "2020-11-05",
            f"{LIMIT} 1000 jobs per call",
        ),
        _entity(
            "ADR-7 batch size",
            "decision",
            "2020-11-16",
            f"{LIMIT} 500 jobs per call",
        ),
        _entity("CI", "decision", "2020-11-13", "CI moved to Forgejo Actions"),
        _entity("merge rule", "rule", "2020-11-10", "Never merge to main on Fridays"),
        {"name": "shop", "type": "project", "summary": "Postgres-backed task queue"},
        _entity("docs/discussions.md", "document", "2020-11-16", DOCUMENT),
        _entity("Deniz Aydin", "person", "", "Operates the workers"),
        _entity("Marta Lindqvist", "person", "", "Lead developer"),
        _entity("Priya Raman", "person", "", "Signs off releases"),
    ]
    relations = [
        _relation("Priya Raman", "signs_off", release),
        _relation("TODO: fetch_job index", "blocks", release),
        _relation("ADR-7 batch size", "supersedes", "ADR-3 batch size"),
    ]
    claude.text("remember", {"entities": entities, "relations": relations})
    replacement = {"text": "Due Friday 2020-12-04 (Marta)", "replaces": "#1", "when": "2020-11-13"}
    claude.text("remember", {"entities": [{"name": release, "facts": [replacement]}]})
    claude.text(
        "remember",
        {
            "entities": [_entity("user", "person", "2020-11-02", "Prefers short answers")],
            "workspace": "personal",
        },
    )
    codex.text(
        "remember",
        {"entities": [_entity("Worker", "component", "2020-11-10", "Heartbeat interval is 15 s")]},
    )


def _entity(name: str, kind: str, when: str, *facts: str, **more: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "when": when, "facts": list(facts), **more}


def _relation(source: str, kind: str, target: str) -> dict[str, str]:
    return {"from": source, "type": kind, "to": target}
