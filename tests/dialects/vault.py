"""A server of the vault dialect in this process, with embeddings of three numbers."""

from typing import Any

from msgspec.json import decode

from polymnia.dialects.base import Client as Caller
from polymnia.dialects.base import ServerRules
from polymnia.dialects.vault import make_dialect
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.server import Server
from polymnia.mcp.session import Session
from polymnia.model import OWNER, Principal
from polymnia.stores import open_store
from polymnia.stores.contract import Store
from tests.mcp.conversation import HANDSHAKE, LATEST, Client

JSON = dict[str, Any]


def vault_server(url: str, *, persist_sessions: bool = False) -> tuple[Server, Store]:
    """Return a started server and its store, which the caller closes."""
    store = open_store(url)
    rules = ServerRules(dimension=3, persist_sessions=persist_sessions)
    server = Server(make_dialect(rules), one_workspace(Memory(store)))
    server.start()
    return server, store


class Agent(Client):
    """A client of the dialect, with its calls as methods."""

    def __init__(
        self,
        server: Server,
        revision: str = LATEST,
        *,
        session: str = "",
        principal: Principal = OWNER,
    ) -> None:
        super().__init__(server, revision, greet=False)
        self.session.close()
        caller = Caller(principal=principal, workspace=server.workspace, session=session)
        self.session = Session(server, client=caller)
        if revision in HANDSHAKE:
            self.initialize(revision)

    def commit(self, key: str, content: str = "text", scope: str = "vault", **more: Any) -> JSON:
        return self.done("commit_memory", scope=scope, key=key, content=content, **more)

    def search(self, query: str, **more: Any) -> JSON:
        return self.done("search_memories", query=query, **more)

    def found(self, query: str, **more: Any) -> list[str]:
        """Return the keys that a search finds, best first."""
        return [result["key"] for result in self.search(query, **more)["results"]]

    def prune(self, scope: str, **more: Any) -> int:
        count: int = self.done("prune_memory", scope=scope, **more)["pruned_count"]
        return count

    def done(self, tool: str, **arguments: Any) -> JSON:
        """Return the structured content of a call that must succeed, and check that its text is the
        same.
        """
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        assert decode(result["content"][0]["text"]) == result["structuredContent"]
        structured: JSON = result["structuredContent"]
        return structured

    def refused(self, tool: str, **arguments: Any) -> str:
        """Return the text of a call that must fail."""
        result = self.call(tool, **arguments)
        assert result.get("isError") is True, result
        text: str = result["content"][0]["text"]
        return text

    def read(self, uri: str) -> Any:
        """Return the JSON at a URI."""
        (content,) = self.result("resources/read", uri=uri)["contents"]
        assert (content["uri"], content["mimeType"]) == (uri, "application/json")
        return decode(content["text"])

    def resources(self) -> list[str]:
        return [resource["uri"] for resource in self.result("resources/list")["resources"]]

    def completed(self, template: str, argument: str, value: str) -> list[str]:
        reference = {"type": "ref/resource", "uri": template}
        asked = {"name": argument, "value": value}
        values: list[str] = self.result("completion/complete", ref=reference, argument=asked)[
            "completion"
        ]["values"]
        return values
