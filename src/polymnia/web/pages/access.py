"""Access: who may write and who did, how to connect a client, and the workspaces."""

import time
from collections import Counter
from contextlib import suppress
from urllib.parse import urlencode

from msgspec import Struct
from starlette.responses import Response

from polymnia.auth.people import People
from polymnia.auth.tokens import Tokens, check_token_name
from polymnia.clients.configuration import edit
from polymnia.clients.table import CLIENTS
from polymnia.engine.health import Overview, overview
from polymnia.engine.workspaces import new_rights
from polymnia.errors import BadInput, FormerWorkspace, NotAllowed, PolymniaError, StoreError
from polymnia.mcp.server import KINDS
from polymnia.model import (
    CAPABILITIES,
    Capability,
    Change,
    ChangeQuery,
    Principal,
    Token,
    Workspace,
    split_actor,
)
from polymnia.transports.http.operations import UI_PATH
from polymnia.web.page import ROWS, Page, get, post

_DAY_S = 86_400
# The lifetimes that the form offers, in days; 0 is unlimited.
LIFETIMES = {90: "in 90 days", 365: "in a year", 7: "in a week", 0: "never"}
# The changes that are counted by who made them.
MAX_COUNTED = 2_000


class AccessRow(Struct, frozen=True, kw_only=True):
    """A token, or a client that wrote without one. Times are in microseconds, 0 for never.

    A token that is not here may be revoked, or that of another server. `changes` are those in the
    chosen workspace among the latest MAX_COUNTED. `usage` says how many calls of the last minute
    count towards its limits.
    """

    name: str
    token: Token | None = None
    is_token: bool = True
    clients: tuple[str, ...] = ()
    logins: int = 0
    changes: int = 0
    last_at: int = 0
    usage: str = ""
    warning: str = ""
    is_own: bool = False


class WorkspaceRow(Struct, frozen=True):
    """A workspace, and what it holds unless it is archived or cannot be read."""

    workspace: Workspace
    holds: Overview | None
    problem: str = ""


class NewToken(Struct, frozen=True):
    """A token that is shown once, and the configuration of each client that can use it."""

    name: str
    text: str
    configurations: list[tuple[str, str, str]]  # the client's title, what to do, the text to copy

    @property
    def id(self) -> str:
        """The public part of the token."""
        return self.text.split("_")[1]


@get("/access", needs="admin")
def show(page: Page) -> Response:
    """Show tokens and workspaces."""
    return _render(page)


@post("/access/tokens/create", needs="admin")
def create_token(page: Page) -> Response:
    """Create a token and show it once."""
    tokens = _tokens(page)
    form = page.form
    # Where the page itself needs no token yet, the first one must be able to open it.
    is_first = not tokens.exist and not page.site.parts.requires_login
    try:
        if is_first and (form.get("can"), form.get("scope")) != ("admin", "all"):
            raise BadInput(
                "the first token must be an admin token for all workspaces: "
                "from then on this page needs a token too"
            )
        can, only = _chosen_rights(page, tokens)
        days = form.number("days") or 0
        text = tokens.create(form["name"], can=can, workspaces=only, lifetime=days * _DAY_S or None)
    except BadInput as exc:
        return _render_problem(page, exc)
    url = page.site.parts.mcp_url
    configurations = []
    for client in CLIENTS.values():
        if client.remote is not None:
            # The name of the server in a client's configuration is "memory".
            entry = edit(client, "", {"memory": client.remote_entry(url, text)})
            what = f"Goes into {client.project_file or client.user_file}. {client.then}"
            configurations.append((client.title, what, entry.strip()))
    command = f"polymnia install CLIENT --http {url} --token {text}"
    configurations.append(("Command line", "Writes the file of a client.", command))
    made = NewToken(form["name"], text, configurations)
    if is_first and not page.principal.id:
        # This user needed no token until now, and continues with the new one.
        page.log_in(next(token.principal for token in tokens.all() if token.id == made.id))
        return page.set_cookie(_render(page, made=made))
    return _render(page, made=made)


@post("/access/people/invite", needs="admin")
def invite(page: Page) -> Response:
    """Create an account and show the link for its person once."""
    people, name = _people(page), page.form["name"]
    try:
        # The first account would lock out those who need no login now.
        tokens = _tokens(page)
        if not tokens.exist and not page.site.parts.requires_login:
            raise BadInput("create an admin token first: with an account, this page needs a login")
        can, only = _chosen_rights(page, tokens)
        code = people.invite(name, can=can, workspaces=only)
    except BadInput as exc:
        return _render_problem(page, exc)
    return _render(page, invited=(name, _join_url(page, code)))


@get("/access/people/manage", needs="admin")
def manage_person(page: Page) -> Response:
    """Show what can be done with a person's account."""
    user = _find_person(page, page.query["name"])
    logins = _people(page).logins(user)
    return _render(page, fragment="access/person.html", person=user, logins=logins)


@post("/access/people/reset", needs="admin")
def reset_person(page: Page) -> Response:
    """Forget a person's password, end their logins, and show a new link once."""
    name = page.form["name"]
    return _render(page, invited=(name, _join_url(page, _people(page).reset(name))))


@post("/access/people/end", needs="admin")
def end_login(page: Page) -> Response:
    """End one login of a person, or the access of a program that they let in."""
    user = _find_person(page, page.form["name"])
    _people(page).end_login(user.id, page.form["id"])
    return page.done(f"Ended a login of {user.name}", page.url("/access"))


@post("/access/people/remove", needs="admin")
def remove_person(page: Page) -> Response:
    """Remove a person. Their logins and programs end with the account."""
    name = page.form["name"]
    _people(page).remove(name)
    return page.done(f"Removed {name}", page.url("/access"))


@get("/access/tokens/used", needs="admin")
def check_use(page: Page) -> Response:
    """Show whether a new token was used."""
    used_at = _tokens(page).last_used(page.query["id"])
    return page.render(
        "access/used.html", fragment="access/used.html", id=page.query["id"], used_at=used_at
    )


@get("/access/tokens/revoke", needs="admin")
def ask_revoke(page: Page) -> Response:
    """Ask before a token is revoked: this cannot be undone."""
    tokens = _tokens(page)
    name = page.query["name"]
    named = [token for token in tokens.held() if token.name == name]
    if not named:
        raise BadInput(f"there is no token {name}")
    is_own = any(token.id == page.principal.id for token in named)
    return _render(page, fragment="access/revoke.html", revoking=name, is_own=is_own)


@post("/access/tokens/revoke", needs="admin")
def revoke(page: Page) -> Response:
    """Revoke a token."""
    name = page.form["name"]
    _tokens(page).revoke(name)
    return page.done(f"Revoked {name}", page.url("/access"))


@get("/access/tokens/limit", needs="admin")
def ask_limits(page: Page) -> Response:
    """Show the limits of a token or person."""
    name = page.query["name"]
    for token in _tokens(page).all("token", "user"):
        if token.name == name and token.revoked_at is None:
            return _render(page, fragment="access/limits.html", limiting=token)
    raise BadInput(f"there is no token {name}")


@post("/access/tokens/limit", needs="admin")
def set_limits(page: Page) -> Response:
    """Limit the calls a minute of a token or person; an empty field is the server's setting."""
    name, form = page.form["name"], page.form
    _tokens(page).limit(name, requests=form.number("requests"), writes=form.number("writes"))
    return page.done(f"Changed the limits of {name}", page.url("/access"))


@post("/access/workspaces/create", needs="admin")
def create_workspace(page: Page) -> Response:
    """Create a workspace."""
    name = page.form["name"].strip()
    page.principal.require_entry(name)
    made = page.site.parts.workspaces.create(name, page.form.get("description").strip())
    return page.done(f"Created {made.name}", page.url("/access"))


@get("/access/workspaces/manage", needs="admin")
def manage_workspace(page: Page) -> Response:
    """Show what can be done with a workspace."""
    workspace = _own_workspace(page, page.query["name"])
    return _render(page, fragment="access/workspace.html", managing=workspace)


@post("/access/workspaces/rename", needs="admin")
def rename_workspace(page: Page) -> Response:
    """Rename a workspace."""
    name, new = _own_workspace(page, page.form["name"]).name, page.form["new"].strip()
    page.principal.require_entry(new)
    renamed = page.site.parts.workspaces.rename(name, new)
    return page.done(f"Renamed {name} to {renamed.name}", _access_url(page))


@post("/access/workspaces/archive", needs="admin")
def archive_workspace(page: Page) -> Response:
    """Archive a workspace: it cannot be used until it is restored."""
    name = _own_workspace(page, page.form["name"]).name
    page.site.parts.workspaces.archive(name)
    return page.done(f"Archived {name}; Restore brings it back", _access_url(page))


@post("/access/workspaces/restore", needs="admin")
def restore_workspace(page: Page) -> Response:
    """Make an archived workspace usable again."""
    name = _own_workspace(page, page.form["name"]).name
    page.site.parts.workspaces.restore(name)
    return page.done(f"Restored {name}", _access_url(page))


@post("/access/workspaces/delete", needs="admin")
def delete_workspace(page: Page) -> Response:
    """Delete a workspace with everything in it, if its name was typed."""
    name = _own_workspace(page, page.form["name"]).name
    if page.form.get("typed") != name:
        raise BadInput("nothing was deleted: type the name of the workspace exactly")
    page.site.parts.workspaces.delete(name)
    return page.done(f"Deleted {name}", _access_url(page))


def _render(page: Page, *, status: int = 200, fragment: str = "", **values: object) -> Response:
    tokens = page.site.parts.tokens if page.principal.administers else None
    # Who administers only some workspaces sees these, but no tokens.
    rows = _access_rows(page, tokens) if tokens is not None else []
    catalogue = page.site.parts.workspaces
    own = [space for space in catalogue.find_all() if page.principal.enters(space.name)]
    start = page.query.number("at") or 0
    end = start + ROWS
    dialogs = {
        "made": None,
        "problem": "",
        "is_former": False,
        "revoking": "",
        "is_own": False,
        "managing": None,
        "limiting": None,
        "invited": None,
        "person": None,
    }
    return page.render(
        "access/page.html",
        fragment=fragment,
        status=status,
        tokens=tokens,
        access_rows=rows[:ROWS],
        has_tokens=any(row.token for row in rows),
        row_count=len(rows),
        max_counted=MAX_COUNTED,
        lifetimes=LIFETIMES,
        capabilities=CAPABILITIES,
        workspace_rows=[_workspace_row(page, workspace) for workspace in own[start:end]],
        workspace_count=len(own),
        next_at=end if len(own) > end else None,
        sole=catalogue.sole,
        quota=catalogue.quota,
        **{**dialogs, **values},
    )


def _render_problem(page: Page, exc: BadInput) -> Response:
    """Show the form again with what is wrong."""
    is_former = isinstance(exc, FormerWorkspace)
    return _render(page, status=400, problem=exc.public, is_former=is_former)


def _tokens(page: Page) -> Tokens:
    """Return the tokens of the server. Raise NotAllowed unless the user manages all of it."""
    if not page.principal.administers:
        raise NotAllowed("tokens are managed with an admin token for all workspaces")
    if page.site.parts.tokens is None:
        raise BadInput("this store has no place for tokens: start the server with --tokens FILE")
    return page.site.parts.tokens


def _chosen_rights(page: Page, tokens: Tokens) -> tuple[Capability, tuple[str, ...] | None]:
    """Return what a new token or person may do, and where (None: everywhere). Raise BadInput."""
    form = page.form
    check_token_name(form["name"])
    can = form.choice("can", CAPABILITIES)
    if form.get("scope") == "all":
        return can, None
    workspaces, name = page.site.parts.workspaces, form["name"]
    keeps = "keep" in form or tokens.has_name(name)
    return can, new_rights(workspaces, name, form.getlist("only"), keeps=keeps)


def _people(page: Page) -> People:
    _tokens(page)
    if page.site.parts.people is None:
        raise BadInput("this store has no place for accounts")
    return page.site.parts.people


def _find_person(page: Page, name: str) -> Token:
    for user in _people(page).all():
        if user.name == name:
            return user
    raise BadInput(f"there is no person {name}")


def _join_url(page: Page, code: str) -> str:
    return f"{page.site.base_url}{UI_PATH}/join?{urlencode({'code': code})}"


def _access_rows(page: Page, tokens: Tokens) -> list[AccessRow]:
    """Return the living tokens, the latest first, then who else wrote to the workspace."""
    counts: Counter[tuple[str, str]] = Counter()
    clients: dict[tuple[str, str], dict[str, None]] = {}
    last: dict[tuple[str, str], int] = {}
    heads: list[Change] = []
    # An archived or damaged workspace is named among the workspaces.
    with suppress(PolymniaError):
        memory = page.memory_of(page.chosen) if page.chosen is not None else None
        if memory is not None and memory.store.capabilities.history:
            with memory.reading() as read:
                heads = read.history.change_heads(ChangeQuery(limit=MAX_COUNTED))
    for head in heads:
        client, token_name = split_actor(head.actor)
        # All clients of a token are one row.
        key = ("", token_name) if token_name else (client, "")
        counts[key] += 1
        clients.setdefault(key, {})[client] = None
        last.setdefault(key, head.at)
    rows = []
    now = time.time()
    people = page.site.parts.people
    for token in reversed(tokens.held("token", "user", "grant")):
        used = tokens.last_used(token.id) or 0
        warning = "expired" if tokens.state(token) == "expired" else ""
        idle = now - (used or token.created_at)
        if not warning and token.expires_at is not None and token.expires_at - now < 14 * _DAY_S:
            days = max(int((token.expires_at - now) // _DAY_S), 0)
            warning = f"expires in {days} days" if days else "expires today"
        elif not warning and idle > 90 * _DAY_S:
            warning = f"unused for {int(idle // _DAY_S)} days"
        key = ("", token.name)
        rows.append(
            AccessRow(
                name=token.name,
                token=token,
                clients=tuple(clients.pop(key, ())),
                logins=len(people.logins(token)) if people is not None and token.account else 0,
                changes=counts[key],
                last_at=max(used * 1_000_000, last.get(key, 0)),
                usage=_usage(page, tokens.principal(token)),
                warning=warning,
                is_own=token.id == page.principal.id,
            )
        )
    for key, names in clients.items():
        client, token_name = key
        rows.append(
            AccessRow(
                name=token_name or client,
                is_token=bool(token_name),
                clients=tuple(names) if token_name else (),
                changes=counts[key],
                last_at=last[key],
            )
        )
    return rows


def _usage(page: Page, principal: Principal) -> str:
    """Return the calls of a token in the last minute, for each limit that it has."""
    limiter = page.site.parts.limiter
    parts = []
    if limiter is not None:
        for kind in KINDS:
            limit = limiter.limit(principal, kind)
            if limit:
                parts.append(f"{limiter.count(principal, kind)} of {limit} {kind}")
    return ", ".join(parts)


def _workspace_row(page: Page, workspace: Workspace) -> WorkspaceRow:
    if workspace.status == "archived":
        return WorkspaceRow(workspace, None)
    try:
        return WorkspaceRow(workspace, overview(page.memory_of(workspace.name)))
    except StoreError as exc:
        return WorkspaceRow(workspace, None, exc.public)


def _own_workspace(page: Page, name: str) -> Workspace:
    page.principal.require_entry(name)
    return page.site.parts.workspaces.find(name)


def _access_url(page: Page) -> str:
    """Return the address of this page without the workspace, which may have been renamed."""
    return page.url("/access", w=None)
