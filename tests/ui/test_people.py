"""People with accounts: invited, logged in, limited and removed; and the programs they let in."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Struct

from polymnia.auth.authenticator import tokens_of
from polymnia.auth.clients import Clients
from polymnia.auth.grants import Grants
from polymnia.auth.people import MAX_ATTEMPTS_BY_NAME, MAX_LOGINS_EACH, People
from polymnia.auth.provider import Identity
from polymnia.auth.tokens import Tokens, file_tokens
from polymnia.errors import NotAdmitted
from tests.cli.commands import run
from tests.transports.running import Running, Talk
from tests.ui.client import Shown, Visitor

PASSWORD = "correct horse battery"
PUBLIC_URL = "https://memory.example.com"
CALLBACK = "https://claude.example/callback"
VERIFIER = "v" * 64


def polymnia(*arguments: str) -> str:
    done = run(*arguments, directory=Path(), environment={"POLYMNIA_PUBLIC_URL": PUBLIC_URL})
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


class Office(Struct):
    """The server of a team."""

    server: Running
    store: str
    tokens: Tokens
    visitors: dict[str, Visitor]

    def invite(self, name: str, *options: str) -> str:
        """Return the code of a person's link."""
        said = polymnia("user", "invite", name, *options, "--store", self.store, "--json")
        link = urlsplit(str(json.loads(said)[0]["link"]))
        assert f"{link.scheme}://{link.netloc}{link.path}" == f"{PUBLIC_URL}/ui/join"
        return parse_qs(link.query)["code"][0]

    def join(self, code: str, password: str = PASSWORD) -> Visitor:
        visitor = Visitor(self.server.port)
        fields = {"code": code, "password": password}
        shown = visitor.post_raw("/ui/join", fields, Origin=visitor.origin)
        assert shown.status == 303, shown.words
        return visitor

    def log_in(self, name: str, password: str = PASSWORD) -> Shown:
        visitor = Visitor(self.server.port)
        fields = {"name": name, "password": password}
        return visitor.post_raw("/ui/login", fields, Origin=visitor.origin)

    def ask(self, **more: str) -> str:
        """Return the address of the page that asks whether a program may come in."""
        grants = Grants(self.tokens, PUBLIC_URL, Clients(self.tokens.signing_key))
        client = grants.register({"client_name": "Claude", "redirect_uris": [CALLBACK]})
        challenge = urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
        query = {
            "client_id": client["client_id"],
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": f"{PUBLIC_URL}/mcp",
            "state": "s",
        }
        return grants.begin({**query, **more}, "/ui/allow")

    def decide(self, visitor: Visitor, address: str, **fields: str) -> Shown:
        request = parse_qs(urlsplit(address).query)["request"][0]
        return visitor.post_once("/ui/allow", request=request, **fields)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    store = f"{tmp_path_factory.mktemp('office')}/"
    polymnia("workspace", "create", "shop", "--store", store)
    tokens = tokens_of(store)
    assert tokens is not None
    settings = {"POLYMNIA_PUBLIC_URL": PUBLIC_URL}
    # The first person is invited after the server has started.
    flags = ("--transport", "http", "--embedder", "none", "--insecure")
    with Running(store, *flags, dialect="native", settings=settings) as server, closing(tokens):
        office = Office(server, store, tokens, {})
        alice = office.invite("alice", "--can", "admin", "--all-workspaces")
        bob = office.invite("bob", "--workspace", "shop")
        office.visitors = {"alice": office.join(alice), "bob": office.join(bob)}
        yield office


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(file_tokens(tmp_path / "tokens"))


def test_a_link_works_once(office: Office) -> None:
    code = office.invite("dora")
    assert "Welcome, dora" in Visitor(office.server.port).get(f"/ui/join?code={code}").words
    office.join(code)
    shown = Visitor(office.server.port).get(f"/ui/join?code={code}")
    assert (shown.status, "used already" in shown.words) == (403, True)


def test_a_short_password_is_refused_and_the_link_still_works(office: Office) -> None:
    code = office.invite("eve")
    visitor = Visitor(office.server.port)
    fields = {"code": code, "password": "short"}
    shown = visitor.post_raw("/ui/join", fields, Origin=visitor.origin)
    assert (shown.status, "at least 12" in shown.words) == (400, True)
    office.join(code)


def test_a_person_sees_their_workspaces_only(office: Office) -> None:
    visitor = office.visitors["bob"]
    names = visitor.get("/ui/more").words
    assert "bob, may write" in names
    assert "shop" in names
    assert "personal-bob" in names
    assert "personal-alice" not in names
    assert visitor.get("/ui/?w=personal-alice").status == 403
    assert visitor.get("/ui/access").status == 403


@pytest.mark.parametrize("name", ["bob", "stranger"])
def test_a_wrong_password_and_an_unknown_name_get_the_same_answer(
    office: Office, name: str
) -> None:
    shown = office.log_in(name, "wrong wrong wrong")
    assert (shown.status, "Wrong name or password." in shown.words) == (403, True)


def test_guessing_a_password_is_stopped_also_when_the_last_guess_is_right(people: People) -> None:
    people.accept(people.invite("ann", can="read", workspaces=None), PASSWORD)
    for number in range(MAX_ATTEMPTS_BY_NAME):
        with pytest.raises(NotAdmitted, match="wrong name or password"):
            people.log_in("ann", "wrong wrong wrong", f"192.0.2.{number}")
    with pytest.raises(NotAdmitted, match=r"too many attempts: try again in (9|10) minutes"):
        people.log_in("ann", PASSWORD, "192.0.2.200")


def test_logins_that_succeed_are_not_counted(people: People) -> None:
    people.accept(people.invite("ann", can="read", workspaces=None), PASSWORD)
    for _ in range(MAX_ATTEMPTS_BY_NAME + 1):
        assert people.log_in("ann", PASSWORD, "192.0.2.1").name == "ann"


def test_the_name_of_another_is_not_given_to_a_person_of_a_provider(people: People) -> None:
    people.invite("ann@example.com", can="read", workspaces=None)
    people.remove("ann@example.com")
    ann = Identity("https://id.example#1", "ann@example.com", "write", ())
    with pytest.raises(NotAdmitted, match="there is another"):
        people.admit(ann, ())


def test_a_person_of_a_provider_is_the_same_after_a_new_address(people: People) -> None:
    first = people.admit(Identity("https://id.example#1", "ann@example.com", "write", ()), ("a",))
    again = people.admit(Identity("https://id.example#1", "ann@new.example", "read", ()), ("a",))
    assert (again.id, again.name, again.can) == (first.id, first.name, "read")
    people.remove("ann@example.com")
    back = people.admit(Identity("https://id.example#1", "ann@example.com", "read", ()), ("a",))
    assert (back.id != first.id, back.name) == (True, first.name)


def test_a_server_that_may_only_read_takes_no_invitations(tmp_path: Path) -> None:
    tokens = file_tokens(tmp_path / "tokens")
    code = People(tokens).invite("ann", can="write", workspaces=None)
    with pytest.raises(NotAdmitted, match="may only read"):
        People(tokens, "read").accept(code, PASSWORD)
    People(tokens).accept(code, PASSWORD)
    assert People(tokens, "read").log_in("ann", PASSWORD, "192.0.2.1").can == "read"


def test_a_person_who_is_removed_is_logged_out_at_once(office: Office) -> None:
    visitor = office.join(office.invite("fred"))
    assert "fred, may write" in visitor.get("/ui/more").words
    polymnia("user", "remove", "fred", "--store", office.store)
    assert "fred" not in visitor.get("/ui/more").words
    assert office.log_in("fred").status == 403


def test_a_reset_ends_logins_and_the_password(office: Office) -> None:
    visitor = office.join(office.invite("gina"))
    polymnia("user", "reset", "gina", "--store", office.store)
    assert "gina" not in visitor.get("/ui/more").words
    assert office.log_in("gina").status == 403


def test_new_rights_count_at_once(office: Office) -> None:
    polymnia("workspace", "create", "lab", "--store", office.store)
    visitor = office.join(office.invite("hugo", "--workspace", "shop"))
    assert visitor.get("/ui/?w=shop").status == 200
    polymnia("user", "assign", "hugo", "--can", "read", "--store", office.store)
    assert "hugo, may read" in visitor.get("/ui/more").words
    assert visitor.get("/ui/?w=shop").status == 200
    polymnia("user", "assign", "hugo", "--workspace", "lab", "--store", office.store)
    assert [visitor.get(f"/ui/?w={name}").status for name in ("shop", "lab")] == [403, 200]


def test_people_end_their_logins_themselves(office: Office) -> None:
    here, there = office.visitors["bob"], office.join(office.invite("ines"))
    login = there.get("/ui/more").text.partition('name="id" value="')[2].partition('"')[0]
    # Another person cannot end it.
    assert here.post("/ui/more/end", id=login).status == 400
    assert "ines" in there.get("/ui/more").words
    there.post("/ui/more/end", id=login)
    assert "ines" not in there.get("/ui/more").words


def test_an_administrator_invites_ends_and_removes_on_the_access_page(office: Office) -> None:
    alice = office.visitors["alice"]
    shown = alice.post(
        "/ui/access/people/invite", name="jim", can="read", scope="only", only="shop"
    )
    code = shown.text.partition("/ui/join?code=")[2].partition("<")[0]
    jim = office.join(code)
    assert "jim, may read" in jim.get("/ui/more").words
    managed = alice.get("/ui/access/people/manage?name=jim")
    assert "A browser" in managed.words
    login = managed.text.partition('name="id" value="')[2].partition('"')[0]
    alice.post("/ui/access/people/end", name="jim", id=login)
    assert "jim" not in jim.get("/ui/more").words
    assert "Removed jim" in alice.post("/ui/access/people/remove", name="jim").words
    assert office.visitors["bob"].post("/ui/access/people/remove", name="alice").status == 403


def test_a_new_person_does_not_get_the_memory_of_a_former_one(office: Office) -> None:
    alice = office.visitors["alice"]
    office.invite("gus")
    polymnia("user", "remove", "gus", "--store", office.store)
    gus = office.join(office.invite("gus"))  # the first one had no memory
    gus.post("/ui/new/entity?w=personal-gus", name="Salary", type="fact", facts="100 a year")
    polymnia("user", "remove", "gus", "--store", office.store)
    for command in (("user", "invite", "gus"), ("token", "create", "gus")):
        refused = run(*command, "--store", office.store, directory=Path())
        assert refused.returncode == 1
        assert "'personal-gus' of a former gus still exists" in refused.stderr
    fields = {"name": "gus", "can": "read", "scope": "only"}
    shown = alice.post("/ui/access/people/invite", **fields)
    assert (shown.status, "former one's memory" in shown.words) == (400, True)
    kept = alice.post("/ui/access/people/invite", **fields, keep="1")
    code = kept.text.partition("/ui/join?code=")[2].partition("<")[0]
    assert "Salary" in office.join(code).get("/ui/").words
    polymnia("user", "remove", "gus", "--store", office.store)
    polymnia("workspace", "delete", "personal-gus", "--yes", "--store", office.store)
    assert "Salary" not in office.join(office.invite("gus")).get("/ui/").words


def test_many_logins_of_a_person_log_no_other_out(people: People) -> None:
    people.invite("ann", can="read", workspaces=())
    people.invite("ben", can="read", workspaces=())
    ann, ben = people.all()
    kept = people.open_session(ann.principal)
    secrets = [people.open_session(ben.principal) for _ in range(MAX_LOGINS_EACH + 1)]
    assert people.find_session(kept) is not None
    assert people.find_session(secrets[0]) is None
    assert people.find_session(secrets[1]) is not None


def test_a_person_lets_a_program_in(office: Office) -> None:
    bob = office.visitors["bob"]
    address = office.ask()
    asked = bob.get(address)
    assert "Allow Claude ?" in asked.words
    assert "claude.example" in asked.words
    assert "Admin" not in asked.words
    shown = office.decide(bob, address, decision="allow", can="write", scope="all")
    query = parse_qs(urlsplit(back_to(shown)).query)
    assert (query["iss"], query["state"]) == ([PUBLIC_URL], ["s"])
    grant = office.tokens.all("grant")[-1].grant
    assert grant is not None
    form = {
        "grant_type": "authorization_code",
        "code": query["code"][0],
        "code_verifier": VERIFIER,
        "client_id": grant.client_id,
    }
    tokens = Grants(office.tokens, PUBLIC_URL, Clients(office.tokens.signing_key)).exchange(form)
    principal = office.tokens.recognise(tokens["access_token"], f"{PUBLIC_URL}/mcp")
    assert (principal.person, principal.own_workspace) == ("bob", "personal-bob")
    with Talk(office.server.port, tokens["access_token"]) as program:
        program.call("remember", entities=[{"name": "Till", "facts": ["It is in the hall."]}])
    history = polymnia("history", "--workspace", "shop", "--store", office.store)
    assert "(token bob: Claude)" in history
    assert "Claude" in polymnia("token", "list", "--store", office.store)
    listed = polymnia("token", "list", "--json", "--store", office.store)
    assert grant.code not in listed
    assert "argon2" not in listed
    assert "Claude" in polymnia("user", "list", "--store", office.store)
    assert "bob: Claude" in office.visitors["alice"].get("/ui/access").words


def test_a_program_that_is_refused_gets_no_code(office: Office) -> None:
    bob = office.visitors["bob"]
    query = parse_qs(urlsplit(back_to(office.decide(bob, office.ask(), decision="deny"))).query)
    assert query["error"] == ["access_denied"]
    assert "code" not in query


@pytest.mark.parametrize(
    "fields",
    [
        {"can": "admin", "scope": "all"},
        {"can": "write", "scope": "only", "only": "personal-alice"},
        {"can": "everything", "scope": "all"},
        {"can": "write", "scope": "only"},
    ],
)
def test_nobody_allows_more_than_they_may(office: Office, fields: dict[str, str]) -> None:
    bob = office.visitors["bob"]
    count = len(office.tokens.all("grant"))
    shown = office.decide(bob, office.ask(), decision="allow", **fields)
    assert shown.status in (400, 403)
    assert len(office.tokens.all("grant")) == count


def test_another_site_cannot_let_a_program_in(office: Office) -> None:
    bob = office.visitors["bob"]
    request = parse_qs(urlsplit(office.ask()).query)["request"][0]
    fields = {"request": request, "decision": "allow", "can": "write", "scope": "all"}
    count = len(office.tokens.all("grant"))
    for token, origin in (("", bob.origin), ("x" * 64, bob.origin)):
        shown = bob.post_raw("/ui/allow", {**fields, "form_token": token}, Origin=origin)
        assert shown.status == 403
    token = bob.get("/ui/more").form_token
    shown = bob.post_raw(
        "/ui/allow", {**fields, "form_token": token}, Origin="https://evil.example"
    )
    assert shown.status == 403
    assert len(office.tokens.all("grant")) == count


def test_the_page_that_asks_cannot_be_framed_and_keeps_its_opener(office: Office) -> None:
    bob = office.visitors["bob"]
    for visitor in (bob, Visitor(office.server.port)):
        shown = visitor.get(office.ask())
        assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
        assert shown.headers["x-frame-options"] == "DENY"
        assert shown.headers["cross-origin-opener-policy"] == "unsafe-none"


def test_a_login_leads_back_to_the_question(office: Office) -> None:
    address = office.ask()
    visitor = Visitor(office.server.port)
    to = visitor.get(address).text.partition('name="to" value="')[2].partition('"')[0]
    fields = {"name": "bob", "password": PASSWORD, "to": to}
    shown = visitor.post_raw("/ui/login", fields, Origin=visitor.origin)
    assert shown.headers["location"] == address


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/\\evil.example", "/ui/\\x"]
)
def test_a_login_never_leads_to_another_site(office: Office, to: str) -> None:
    visitor = Visitor(office.server.port)
    fields = {"name": "bob", "password": PASSWORD, "to": to}
    shown = visitor.post_raw("/ui/login", fields, Origin=visitor.origin)
    assert shown.headers["location"] == "/ui/"


def back_to(shown: Shown) -> str:
    """Return where a page sends the browser."""
    assert shown.status == 200, shown.words
    return shown.text.partition('content="0;url=')[2].partition('"')[0].replace("&amp;", "&")
