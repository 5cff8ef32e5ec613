"""A server over standard input and output whose tools write to standard output in every way there
is.
"""

import logging
import os
import subprocess
import sys

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
def printing(call: Call, arguments: Nothing) -> Reply:
    """Print, and leave it in the buffer"""
    print("noise from printing")
    return Reply("printed")


@tool(Nothing, needs="read")
def flushing(call: Call, arguments: Nothing) -> Reply:
    """Print, and see that it goes out"""
    print("noise from flushing", flush=True)
    return Reply("flushed")


@tool(Nothing, needs="read")
def descending(call: Call, arguments: Nothing) -> Reply:
    """Write to the descriptor itself"""
    os.write(1, b"noise from descending\n")
    return Reply("descended")


@tool(Nothing, needs="read")
def delegating(call: Call, arguments: Nothing) -> Reply:
    """Have a child process write"""
    subprocess.run([sys.executable, "-c", "print('noise from delegating')"], check=True)
    return Reply("delegated")


@tool(Nothing, needs="read")
def logging_(call: Call, arguments: Nothing) -> Reply:
    """Log to a handler of standard output"""
    logger = logging.getLogger("noise")
    logger.addHandler(logging.StreamHandler(sys.stdout))
    logger.error("noise from logging_")
    return Reply("logged")


NOISY = Dialect(
    name="noisy",
    server_name="noisy",
    server_version="1",
    instructions="",
    tools=catalogue(printing, flushing, descending, delegating, logging_),
)

if __name__ == "__main__":
    serve_stdio(Server(NOISY, one_workspace(Memory(open_store("memory:")))), limit=1 << 20)
