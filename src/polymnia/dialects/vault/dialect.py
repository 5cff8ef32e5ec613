"""The vault catalogue put together."""

from polymnia.dialects.base import Dialect, NoteRules
from polymnia.dialects.vault.resources import TEMPLATES, VAULT_RESOURCE, own_resources, resource_set_changed
from polymnia.dialects.vault.tools import Vault

_INSTRUCTIONS = """\
A memory of short notes by key, in two scopes: session, which is forgotten when this conversation ends, and vault, \
which lasts and which every session sees.
Look before you answer: search_memories finds by words (FTS5 syntax), by tags that must all be there, and by an \
embedding if you have one.
Keep what you learn: commit_memory stores a note under a key and replaces what was there; prune_memory deletes by key, \
age or tags."""


def under(rules: NoteRules) -> Dialect:
    """The catalogue under the rules of a server."""
    vault = Vault(rules)
    return Dialect(
        name="vault",
        server_name="memory-mcp",
        server_version="1.0.0",
        instructions=_INSTRUCTIONS,
        tools=vault.tools(),
        resources=(VAULT_RESOURCE,),
        templates=TEMPLATES,
        resource_set_changed=resource_set_changed,
        own_resources=own_resources,
        started=vault.started,
        stopped=vault.stopped,
        left=vault.left,
    )


DIALECT = under(NoteRules())
