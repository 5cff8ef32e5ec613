"""Workspaces: namespaces with their own graph and notes."""

from typing import Literal

from msgspec import Struct

Status = Literal["active", "archived"]


class Workspace(Struct, frozen=True):
    """A namespace with its own graph and notes."""

    id: str
    name: str
    description: str = ""
    status: Status = "active"
    created_at: int = 0
    updated_at: int = 0
