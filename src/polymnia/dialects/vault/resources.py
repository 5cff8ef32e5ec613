"""Notes as resources: the client's session, the vault, a page of it, and single notes by key."""

from collections.abc import Sequence
from urllib.parse import parse_qsl, quote, unquote

from polymnia.dialects.base import Call, Client, Resource, ResourceTemplate
from polymnia.dialects.replies import indented_json
from polymnia.dialects.vault.shapes import memory, own_session, require_session
from polymnia.engine import notes
from polymnia.errors import InvalidParams
from polymnia.model import VAULT, Change, Note, NoteScope

_SESSION = "memory://session/"
_VAULT = "memory://vault"
_PAGE = f"{_VAULT}?"
_KEY = f"{_VAULT}/"
# Offsets and limits with more digits would not fit into 64 bits.
_MAX_DIGITS = 18


def resource_set_changed(client: Client, change: Change) -> bool:
    """Return True if the change created or deleted a note that the client may see."""
    return _addresses(client, change.before.notes) != _addresses(client, change.after.notes)


def own_resources(client: Client) -> list[Resource]:
    """Return the client's session as a resource, if it has one."""
    scope = own_session(client)
    if scope is None:
        return []
    uri = _SESSION + quote(scope.session, safe="")
    return [
        Resource(
            uri=uri,
            name="session",
            title="Session memories",
            description="All memories of this session, as a JSON array",
            read=lambda call: _page_json(call, scope),
            touched_by=lambda client, change: _touches_session(client, change, uri),
        )
    ]


def _addresses(client: Client, notes: Sequence[Note]) -> set[tuple[NoteScope, str]]:
    own = own_session(client)
    return {(note.scope, note.key) for note in notes if note.scope in (VAULT, own)}


def _read_session(call: Call, uri: str) -> str | None:
    if not uri.startswith(_SESSION):
        return None
    own = require_session(call.client)
    if _rest_of(uri, _SESSION) != own.session:
        address = _SESSION + quote(own.session, safe="")
        raise InvalidParams(f"a client may read only its own session: {address}")
    return _page_json(call, own)


def _touches_session(client: Client, change: Change, uri: str) -> bool:
    own = own_session(client)
    if own is None or not uri.startswith(_SESSION) or _rest_of(uri, _SESSION) != own.session:
        return False
    return any(note.scope == own for note in _changed_notes(change))


def _complete_session(call: Call, argument: str, value: str) -> Sequence[str]:
    own = own_session(call.client)
    if own is None or not own.session.startswith(value):
        return []
    return [own.session]


def _touches_vault(client: Client, change: Change) -> bool:
    return any(note.scope == VAULT for note in _changed_notes(change))


def _read_page(call: Call, uri: str) -> str | None:
    if not uri.startswith(_PAGE):
        return None
    given = dict(parse_qsl(uri.removeprefix(_PAGE), keep_blank_values=True))
    if unknown := sorted(set(given) - {"offset", "limit"}):
        raise InvalidParams(f"{', '.join(unknown)}: {_VAULT} takes only offset and limit")
    limit = _number(given, "limit") if "limit" in given else None
    return _page_json(call, VAULT, _number(given, "offset"), limit)


def _read_key(call: Call, uri: str) -> str | None:
    key = _key(uri)
    if key is None:
        return None
    note = notes.read(call.memory, VAULT, key)
    if note is None:
        return None
    return indented_json(memory(note))


def _touches_key(client: Client, change: Change, uri: str) -> bool:
    key = _key(uri)
    return any(note.scope == VAULT and note.key == key for note in _changed_notes(change))


def _key(uri: str) -> str | None:
    if not uri.startswith(_KEY):
        return None
    return _rest_of(uri, _KEY)


def _changed_notes(change: Change) -> tuple[Note, ...]:
    return change.before.notes + change.after.notes


def _page_json(call: Call, scope: NoteScope, offset: int = 0, limit: int | None = None) -> str:
    return indented_json(
        [memory(note) for note in notes.page(call.memory, scope, offset=offset, limit=limit)]
    )


def _number(given: dict[str, str], name: str) -> int:
    text = given.get(name, "0")
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
        raise InvalidParams(f"{name}: expected a non-negative integer, got {text!r}")
    return int(text)


def _rest_of(uri: str, start: str) -> str | None:
    """Return the percent-decoded rest of a URI, or None if it is not UTF-8."""
    try:
        return unquote(uri.removeprefix(start), errors="strict")
    except UnicodeDecodeError:
        return None


VAULT_RESOURCE = Resource(
    uri=_VAULT,
    name="vault",
    title="Vault memories",
    description="All vault memories, as a JSON array",
    read=lambda call: _page_json(call, VAULT),
    touched_by=_touches_vault,
)
TEMPLATES = (
    ResourceTemplate(
        uri_template=f"{_SESSION}{{session_id}}",
        name="session",
        title="Session memories",
        description="All memories for the given session, as a JSON array; a client may read only "
        "its own session",
        read=_read_session,
        touched=_touches_session,
        complete=_complete_session,
    ),
    ResourceTemplate(
        uri_template=f"{_VAULT}{{?offset,limit}}",
        name="vault",
        title="Vault memories by page",
        description="Vault memories starting at an offset, up to a limit, as a JSON array",
        read=_read_page,
        touched=lambda client, change, uri: (
            uri.startswith(_PAGE) and _touches_vault(client, change)
        ),
    ),
    ResourceTemplate(
        uri_template=f"{_KEY}{{key}}",
        name="vault memory",
        title="Vault memory",
        description="Single vault memory by key, as a JSON object",
        read=_read_key,
        touched=_touches_key,
        complete=lambda call, argument, value: notes.keys(call.memory, VAULT, value),
    ),
)
