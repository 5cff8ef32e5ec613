"""The `vault` dialect: notes by key, private to a session or in the vault for all."""

from polymnia.dialects.base import Dialect, ServerRules
from polymnia.dialects.vault.resources import (
    TEMPLATES,
    VAULT_RESOURCE,
    own_resources,
    resource_set_changed,
)
from polymnia.dialects.vault.tools import Vault

_INSTRUCTIONS = """\
A memory of short notes by key, in two scopes: session, which is forgotten when this conversation \
ends, and vault, which lasts and is shared by all sessions.
Look before you answer: search_memories finds by words (FTS5 syntax), by tags that must all be \
present, and by an embedding if you have one."""
_WRITE_INSTRUCTIONS = """\
Keep what you learn: commit_memory stores a note under a key and replaces the previous one; \
prune_memory deletes by key, age or tags."""


def make_dialect(rules: ServerRules) -> Dialect:
    """Return the catalogue for a server with these rules."""
    vault = Vault(rules)
    return Dialect(
        name="vault",
        server_name="memory-mcp",
        server_version="1.0.0",
        instructions=_INSTRUCTIONS,
        write_instructions=_WRITE_INSTRUCTIONS,
        tools=vault.tools(),
        resources=(VAULT_RESOURCE,),
        templates=TEMPLATES,
        resource_set_changed=resource_set_changed,
        own_resources=own_resources,
        on_start=vault.on_start,
        on_stop=vault.on_stop,
        on_session_end=vault.on_session_end,
    )


DIALECT = make_dialect(ServerRules())
