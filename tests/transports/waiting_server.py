"""A server over standard input and output with a tool that goes on until it is cancelled."""

from threading import Event

from msgspec import Struct

from polymnia.dialects.base import Call, Dialect, Reply, catalogue, tool
from polymnia.engine.memory import Memory
from polymnia.engine.workspaces import one_workspace
from polymnia.mcp.server import Server
from polymnia.stores import open_store
from polymnia.transports.stdio import serve_stdio


class Nothing(Struct, frozen=True):
    pass


@tool(Nothing, needs="read")
def wait(call: Call, arguments: Nothing) -> Reply:
    """Go on until cancelled"""
    never = Event()
    while not never.wait(0.01):
        call.check()
    return Reply("ended by itself")


@tool(Nothing, needs="read")
def echo(call: Call, arguments: Nothing) -> Reply:
    """Answer"""
    return Reply("echo")


WAITING = Dialect(
    name="waiting",
    server_name="waiting",
    server_version="1",
    instructions="",
    tools=catalogue(wait, echo),
)

if __name__ == "__main__":
    serve_stdio(Server(WAITING, one_workspace(Memory(open_store("memory:")))), limit=1 << 20)
