"""Memory interfaces of agent frameworks over a Polymnia memory.

Each module imports its framework, so import the one you use. All of them take what
`polymnia.open()` or `connect()` returns.
"""

from polymnia_frameworks.remote import RemoteMemory, RemoteNotes, connect

__all__ = ["RemoteMemory", "RemoteNotes", "connect"]
