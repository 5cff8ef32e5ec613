"""Tokens in a file.

Created, hashed, recognised, expired, rotated, revoked, and safe from a damaged file.
"""

import hmac
import json
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polymnia.auth.authenticator import Authenticator
from polymnia.auth.tokens import Tokens, file_tokens
from polymnia.errors import BadInput, NotAdmitted, StoreDamaged, StoreTooNew
from polymnia.model import OWNER
from tests.cli.commands import run
from tests.processes import TIMEOUT_S


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return file_tokens(tmp_path / "memory.db.tokens")


def path_of(tokens: Tokens) -> Path:
    assert tokens.path is not None
    return tokens.path


def test_a_token_identifies_the_principal_it_was_created_for(tokens: Tokens) -> None:
    text = tokens.create("alice", can="write", workspaces=["sales", "hr"])
    principal = tokens.recognise(text)
    assert (principal.name, principal.can, principal.workspaces) == (
        "alice",
        "write",
        frozenset(("hr", "sales")),
    )


def test_the_file_holds_a_hash_and_not_the_secret(tokens: Tokens) -> None:
    text = tokens.create("alice", can="read")
    kept = path_of(tokens).read_text()
    assert "alice" in kept
    assert text not in kept
    assert text.split("_", 2)[2] not in kept


def test_only_its_owner_may_read_the_file(tokens: Tokens) -> None:
    tokens.create("alice", can="read")
    tokens.create("bob", can="read")
    assert stat.S_IMODE(path_of(tokens).stat().st_mode) == 0o600


def test_tokens_are_unique(tokens: Tokens) -> None:
    assert len({tokens.create(f"agent {number}", can="read") for number in range(50)}) == 50


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "x",
        lambda text: text + "A" * 200,
        lambda text: text.swapcase(),
    ],
)
def test_a_slightly_altered_token_is_unknown(tokens: Tokens, change: Callable[[str], str]) -> None:
    text = tokens.create("alice", can="read")
    with pytest.raises(NotAdmitted, match="unknown token"):
        tokens.recognise(change(text))


@pytest.mark.parametrize(
    "text", ["", "ply", "ply_", "ply__", "ply_000000000000_x", "x" * 100_000, "\ud800", "a.b.c"]
)
def test_malformed_tokens_get_the_same_error(tokens: Tokens, text: str) -> None:
    tokens.create("alice", can="read")
    with pytest.raises(NotAdmitted, match=r"^unknown token$"):
        tokens.recognise(text)


def test_hashes_are_compared_in_constant_time_for_known_and_unknown_ids_alike(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tokens.create("alice", can="read")
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def noted(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    tokens.recognise(text)
    for wrong in (text[:-1] + "!", "ply_ffffffffffff_unknown", "nonsense"):
        with pytest.raises(NotAdmitted):
            tokens.recognise(wrong)
    assert compared == [(64, 64)] * 4


def test_an_expired_token_is_rejected(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tokens.create("alice", can="read", lifetime=60)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    with pytest.raises(NotAdmitted, match="alice is expired"):
        tokens.recognise(text)


def test_a_revoked_token_is_rejected_in_every_process(tokens: Tokens) -> None:
    text = tokens.create("alice", can="read")
    other = file_tokens(path_of(tokens))
    other.recognise(text)
    tokens.revoke("alice")
    for item in (tokens, other):
        with pytest.raises(NotAdmitted, match="alice is revoked"):
            item.recognise(text)


def test_revoking_a_name_also_revokes_the_active_token_behind_an_expired_one(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.create("alice", can="read", lifetime=60)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    living = tokens.create("alice", can="admin")
    tokens.revoke("alice")
    with pytest.raises(NotAdmitted, match="revoked"):
        tokens.recognise(living)


def test_a_name_has_one_active_token(tokens: Tokens) -> None:
    tokens.create("alice", can="read")
    with pytest.raises(BadInput, match="rotate or revoke it"):
        tokens.create("alice", can="write")
    tokens.revoke("alice")
    assert tokens.recognise(tokens.create("alice", can="write")).can == "write"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", "x" * 101])
def test_a_name_must_be_printable(tokens: Tokens, name: str) -> None:
    with pytest.raises(BadInput, match="printable"):
        tokens.create(name, can="read")


def test_a_blank_workspace_is_rejected(tokens: Tokens) -> None:
    with pytest.raises(BadInput, match="workspace"):
        tokens.create("alice", can="read", workspaces=[" "])
    assert not path_of(tokens).exists()


DAMAGE = {
    "empty": b"",
    "half": b'{"version":1,"tokens":[{"id":"a","na',
    "another document": b'{"entities":[]}',
    "no version": b'{"tokens":[]}',
    "an unknown capability": b'{"version":1,"tokens":'
    b'[{"id":"a","name":"a","hash":"h","can":"all","created_at":1}]}',
    "not text": b"\xff\xfe\x00",
    "null": b"null",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_rejects_all_tokens_and_is_not_overwritten(
    tokens: Tokens, kind: str
) -> None:
    text = tokens.create("alice", can="admin")
    authenticator = Authenticator(tokens)
    path_of(tokens).write_bytes(DAMAGE[kind])
    for given in (text, None, "nonsense"):
        with pytest.raises(NotAdmitted):
            authenticator.admit(given)
    with pytest.raises(StoreDamaged):
        tokens.create("bob", can="read")
    assert path_of(tokens).read_bytes() == DAMAGE[kind]


def test_a_file_of_a_later_version_rejects_all_tokens(tokens: Tokens) -> None:
    text = tokens.create("alice", can="admin")
    contents = json.loads(path_of(tokens).read_text())
    path_of(tokens).write_text(json.dumps({**contents, "version": 3}))
    with pytest.raises(StoreTooNew, match="version 3"):
        tokens.recognise(text)


def test_a_repaired_file_works_again(tokens: Tokens) -> None:
    text = tokens.create("alice", can="admin")
    whole = path_of(tokens).read_bytes()
    authenticator = Authenticator(tokens)
    path_of(tokens).write_bytes(b"{")
    with pytest.raises(NotAdmitted):
        authenticator.admit(text)
    path_of(tokens).write_bytes(whole)
    assert authenticator.admit(text).name == "alice"


def test_a_token_is_required_as_soon_as_there_is_a_file(tokens: Tokens) -> None:
    authenticator = Authenticator(tokens)
    assert authenticator.admit(None) == OWNER
    tokens.create("alice", can="read")
    with pytest.raises(NotAdmitted, match="a token is required"):
        authenticator.admit(None)


def test_a_token_is_still_required_when_the_last_one_is_revoked(tokens: Tokens) -> None:
    tokens.create("alice", can="read")
    tokens.revoke("alice")
    with pytest.raises(NotAdmitted):
        Authenticator(tokens).admit(None)


def test_a_running_server_still_requires_a_token_when_the_file_disappears(tokens: Tokens) -> None:
    text = tokens.create("alice", can="admin")
    authenticator = Authenticator(tokens)
    assert authenticator.admit(text).name == "alice"
    path_of(tokens).unlink()
    for given in (None, text):
        with pytest.raises(NotAdmitted):
            authenticator.admit(given)


def test_a_dangling_symbolic_link_counts_as_a_token_file(tokens: Tokens) -> None:
    path_of(tokens).symlink_to(path_of(tokens).parent / "gone")
    with pytest.raises(NotAdmitted):
        Authenticator(tokens).admit(None)


def test_a_read_only_server_limits_every_token_to_reading(tokens: Tokens) -> None:
    text = tokens.create("alice", can="admin", workspaces=["sales"])
    admitted = Authenticator(tokens, max_capability="read").admit(text)
    assert (admitted.can, admitted.workspaces) == ("read", frozenset(("sales",)))


def test_a_principal_stays_admitted_until_revoked_or_expired(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    authenticator = Authenticator(tokens)
    assert authenticator.holds(OWNER)
    lasting = authenticator.admit(tokens.create("alice", can="read"))
    passing = authenticator.admit(tokens.create("bob", can="read", lifetime=60))
    assert [authenticator.holds(item) for item in (OWNER, lasting, passing)] == [False, True, True]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert [authenticator.holds(item) for item in (lasting, passing)] == [True, False]
    tokens.revoke("alice")
    assert not authenticator.holds(lasting)


CREATE = "import sys; from polymnia.cli.main import main; sys.exit(main(sys.argv[1:]))"


def in_a_process(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", CREATE, "token", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def polymnia(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("token", *arguments, directory=Path.cwd())


@pytest.mark.matrix
def test_tokens_created_at_once_by_several_processes_are_all_kept(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")

    def create(number: int) -> str:
        done = in_a_process("create", f"agent {number}", "--can", "write", "--store", store)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(create, range(12)))
    known = file_tokens(tmp_path / "memory.db.tokens")
    assert sorted(known.recognise(text).name for text in made) == sorted(
        f"agent {number}" for number in range(12)
    )


def test_the_command_prints_a_token_once_and_lists_it_without_its_secret(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    text = polymnia("create", "alice", "--can", "write", "--expires", "90d", "--store", store)
    assert text.stdout.startswith("ply_")
    for form in ([], ["--json"]):
        listed = polymnia("list", "--store", store, *form).stdout
        assert "alice" in listed
        assert "active" in listed
        assert text.stdout.strip() not in listed
        assert json.loads(Path(f"{store}.tokens").read_text())["tokens"][0]["hash"] not in listed
    assert polymnia("revoke", "alice", "--store", store).stdout == "revoked alice\n"
    assert "revoked" in polymnia("list", "--store", store).stdout
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["create", "a", "--expires", "soon"], "30d, 12h or 45m"),
        (["create", "a", "--expires", "0d"], "30d, 12h or 45m"),
        (["revoke", "nobody"], "there is no token nobody"),
        (["create", "\t"], "printable"),
        (["create", "a", "--can", "fly"], "not one of read, write, admin"),
    ],
)
def test_the_command_says_what_is_wrong(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    done = polymnia(*arguments, "--store", str(tmp_path / "memory.db"))
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_in_memory_needs_an_explicit_token_file(tmp_path: Path) -> None:
    assert "--tokens" in polymnia("create", "a", "--store", "memory:").stderr
    named = str(tmp_path / "t.json")
    assert polymnia("create", "a", "--store", "memory:", "--tokens", named).stdout.startswith(
        "ply_"
    )


def test_a_rotated_token_keeps_its_name_and_rights_and_the_old_one_is_revoked(
    tokens: Tokens,
) -> None:
    old = tokens.create("ci", can="write", workspaces=["sales"])
    new = tokens.rotate("ci")
    principal = tokens.recognise(new)
    assert (principal.name, principal.can, principal.workspaces) == (
        "ci",
        "write",
        frozenset(("sales",)),
    )
    with pytest.raises(NotAdmitted, match="ci is revoked"):
        tokens.recognise(old)


def test_with_an_overlap_the_old_token_works_until_it_ends(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tokens.create("ci", can="write")
    new = tokens.rotate("ci", overlap=3600)
    assert tokens.recognise(old).name == tokens.recognise(new).name == "ci"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    assert tokens.recognise(new).name == "ci"
    with pytest.raises(NotAdmitted, match="ci is expired"):
        tokens.recognise(old)


def test_an_overlap_never_prolongs_a_token(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tokens.create("ci", can="write", lifetime=60)
    tokens.rotate("ci", overlap=3600)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    with pytest.raises(NotAdmitted, match="ci is expired"):
        tokens.recognise(old)


def test_only_an_active_token_can_be_rotated(tokens: Tokens) -> None:
    tokens.create("ci", can="write")
    tokens.revoke("ci")
    for name in ("ci", "unknown"):
        with pytest.raises(BadInput, match=f"there is no token {name}"):
            tokens.rotate(name)


def test_the_last_use_of_a_token_is_known_to_other_processes(tokens: Tokens) -> None:
    before = int(time.time())
    text = tokens.create("ci", can="read")
    (token,) = tokens.all()
    assert tokens.last_used(token.id) is None
    tokens.recognise(text)
    used = file_tokens(path_of(tokens)).last_used(token.id)
    assert used is not None
    assert used >= before


def test_a_failed_login_is_not_a_use(tokens: Tokens) -> None:
    text = tokens.create("ci", can="read")
    (token,) = tokens.all()
    with pytest.raises(NotAdmitted):
        tokens.recognise(text + "x")
    assert tokens.last_used(token.id) is None


def test_the_command_rotates_and_shows_the_last_use(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    old = polymnia("create", "ci", "--can", "write", "--store", store).stdout.strip()
    file_tokens(Path(f"{store}.tokens")).recognise(old)
    new = polymnia("rotate", "ci", "--store", store).stdout.strip()
    assert (new.startswith("ply_"), new != old) == (True, True)
    listed = json.loads(polymnia("list", "--json", "--store", store).stdout)
    assert [(item["state"], item["last_used_at"] is None) for item in listed] == [
        ("revoked", False),
        ("active", True),
    ]
    assert time.strftime("%Y-%m-%d", time.gmtime()) in polymnia("list", "--store", store).stdout


def test_failed_logins_are_logged_with_the_address_and_not_with_the_token(
    tokens: Tokens, caplog: pytest.LogCaptureFixture
) -> None:
    text = tokens.create("alice", can="read")
    tokens.revoke("alice")
    with pytest.raises(NotAdmitted):
        Authenticator(tokens).admit(text, peer="192.0.2.7")
    (entry,) = caplog.records
    assert (entry.levelname, entry.getMessage()) == (
        "WARNING",
        "login failed: the token alice is revoked",
    )
    assert vars(entry)["client"] == "192.0.2.7"


def test_many_failed_logins_do_not_flood_the_log(
    tokens: Tokens, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.create("alice", can="read")
    authenticator, now = Authenticator(tokens), time.monotonic()
    for second in (0, 2):
        monkeypatch.setattr(time, "monotonic", lambda second=second: now + second)
        for _ in range(100):
            with pytest.raises(NotAdmitted):
                authenticator.admit("guess")
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "login failed: unknown token",
        "login failed: unknown token (100 since the last report)",
    ]


def test_a_request_without_a_token_is_not_a_failed_login(
    tokens: Tokens, caplog: pytest.LogCaptureFixture
) -> None:
    tokens.create("alice", can="read")
    with pytest.raises(NotAdmitted):
        Authenticator(tokens).admit(None)
    assert caplog.records == []
