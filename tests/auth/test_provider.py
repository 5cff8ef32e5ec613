"""Tokens of an identity provider: signature, issuer, audience, expiry and scopes."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from polymnia.app import provider_of
from polymnia.auth.authenticator import Authenticator
from polymnia.auth.provider import Provider
from polymnia.auth.tokens import file_tokens
from polymnia.errors import NotAdmitted, SettingsError
from polymnia.model import Principal
from polymnia.settings import Settings
from tests.auth.signing import AUDIENCE, EC, ED, ISSUER, KEYS, OTHER_RSA, RSA, claims, pem, signed


def open_provider(issuer: str, audience: str, file: str) -> Callable[[str], Principal]:
    """Return the function that recognises tokens that were signed with a key in the file."""
    return Provider(issuer, audience=audience, key_file=file).recognise


def jwks(**keys: Any) -> str:
    """Return a JWKS document with these keys."""
    made = []
    for kid, key in keys.items():
        kind: Any = (
            RSAAlgorithm if key in (RSA, OTHER_RSA) else ECAlgorithm if key is EC else OKPAlgorithm
        )
        made.append({**json.loads(kind.to_jwk(key.public_key())), "kid": kid})
    return json.dumps({"keys": made})


@pytest.fixture
def recognise(tmp_path: Path) -> Callable[[str], Principal]:
    """Return the function that recognises tokens signed with the RSA key."""
    file = tmp_path / "key.pem"
    file.write_text(pem(RSA))
    return open_provider(ISSUER, AUDIENCE, str(file))


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_signed_token_identifies_its_subject(tmp_path: Path, algorithm: str) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem(KEYS[algorithm]))
    principal = open_provider(ISSUER, AUDIENCE, str(file))(signed(algorithm))
    assert (principal.name, principal.can, principal.workspaces) == ("alice", "write", None)


@pytest.mark.parametrize(
    ("kid", "algorithm"), [("one", "RS256"), ("two", "ES256"), ("three", "EdDSA")]
)
def test_the_key_of_a_document_is_chosen_by_its_id(
    tmp_path: Path, kid: str, algorithm: str
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(jwks(one=RSA, two=EC, three=ED))
    recognise = open_provider(ISSUER, AUDIENCE, str(file))
    assert recognise(signed(algorithm, kid=kid)).name == "alice"


@pytest.mark.parametrize("kid", [None, "four", ""])
def test_with_several_keys_a_token_must_name_a_known_one(tmp_path: Path, kid: str | None) -> None:
    file = tmp_path / "keys.json"
    file.write_text(jwks(one=RSA, two=EC))
    with pytest.raises(NotAdmitted, match="a key that the server does not have"):
        open_provider(ISSUER, AUDIENCE, str(file))(signed(kid=kid))


@pytest.mark.parametrize(
    ("kid", "algorithm"), [("two", "RS256"), ("three", "RS256"), ("one", "ES256"), ("two", "EdDSA")]
)
def test_a_key_verifies_only_signatures_of_its_kind(
    tmp_path: Path, kid: str, algorithm: str
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(jwks(one=RSA, two=EC, three=ED))
    with pytest.raises(NotAdmitted):
        open_provider(ISSUER, AUDIENCE, str(file))(signed(algorithm, kid=kid))


WRONG: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example.com"},
    "another audience": {"aud": "https://other.example.com"},
    "audiences without ours": {"aud": ["a", "b"]},
    "expired": {"exp": int(time.time()) - 10},
    "not yet": {"nbf": int(time.time()) + 86_400},
    "no issuer": {"iss": None},
    "no audience": {"aud": None},
    "no expiry": {"exp": None},
    "nobody": {"sub": None},
    "somebody without a name": {"sub": " "},
    "a number for a name": {"sub": 7},
    "no scope": {"scope": None},
    "scopes of others": {"scope": "openid polymnia:everything"},
    "a scope that only begins like ours": {"scope": "polymnia:adminx"},
    "scopes of a strange form": {"scope": {"polymnia:admin": True}},
    "scopes of strange forms": {"scope": None, "scp": [{"polymnia:admin": 1}, 3]},
    "workspaces that are no list": {"polymnia_workspaces": "sales"},
    "workspaces that are no names": {"polymnia_workspaces": [1]},
    "an expiry that is no time": {"exp": "tomorrow"},
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_or_missing_claims_are_rejected(
    recognise: Callable[[str], Principal], kind: str
) -> None:
    encode = jwt.api_jws.encode  # the library refuses to sign some of these claims
    token = encode(json.dumps(claims(**WRONG[kind])).encode(), RSA, algorithm="RS256")
    with pytest.raises(NotAdmitted):
        recognise(token)


def test_a_token_signed_with_another_key_is_rejected(recognise: Callable[[str], Principal]) -> None:
    with pytest.raises(NotAdmitted):
        recognise(signed(key=OTHER_RSA))


def forged(header: dict[str, Any], signature: bytes = b"") -> str:
    parts = (
        json.dumps(header).encode(),
        json.dumps(claims(scope="polymnia:admin")).encode(),
        signature,
    )
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def with_public_key_as_secret() -> str:
    """Sign with an HMAC keyed with the public key, to fool a verifier that trusts the header."""
    import hashlib
    import hmac

    unsigned = forged({"alg": "HS256", "typ": "JWT"}).rsplit(".", 1)[0]
    return (
        unsigned
        + "."
        + urlsafe_b64encode(hmac.digest(pem(RSA).encode(), unsigned.encode(), hashlib.sha256))
        .rstrip(b"=")
        .decode()
    )


FORGERIES: dict[str, Callable[[], str]] = {
    "unsigned": lambda: forged({"alg": "none"}),
    "unsigned in capitals": lambda: forged({"alg": "NONE"}),
    "no algorithm": lambda: forged({"typ": "JWT"}),
    "an unknown algorithm": lambda: forged({"alg": "XX1"}, b"x"),
    "signed with the public key": with_public_key_as_secret,
    "a cut signature": lambda: signed()[:-10],
    "no signature": lambda: signed().rsplit(".", 1)[0] + ".",
    "other claims under a good signature": lambda: ".".join(
        (signed().split(".")[0], forged({}).split(".")[1], signed().split(".")[2])
    ),
    "a key id that is no text": lambda: forged({"alg": "RS256", "kid": 7}, b"x"),
    "a key of its own": lambda: signed(key=OTHER_RSA, kid="../../etc/passwd"),
    "a critical extension": lambda: jwt.encode(
        claims(), RSA, algorithm="RS256", headers={"crit": ["x"], "x": 1}
    ),
    "dots": lambda: "..",
    "nonsense": lambda: "a.b.c",
    "not text": lambda: "ÿ.ÿ.ÿ",
    "very long": lambda: "a" * 50_000 + ".b.c",
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_tokens_are_rejected(recognise: Callable[[str], Principal], kind: str) -> None:
    with pytest.raises(NotAdmitted):
        recognise(FORGERIES[kind]())


@pytest.mark.parametrize(
    ("given", "can"),
    [
        ({"scope": "polymnia:read"}, "read"),
        ({"scope": "polymnia:read polymnia:admin"}, "admin"),
        ({"scope": None, "scp": ["polymnia:write"]}, "write"),
        ({"scope": ["polymnia:read", "x"]}, "read"),
    ],
)
def test_scopes_determine_the_capability(
    recognise: Callable[[str], Principal], given: dict[str, Any], can: str
) -> None:
    assert recognise(signed(**given)).can == can


def test_a_claim_limits_the_workspaces(recognise: Callable[[str], Principal]) -> None:
    principal = recognise(signed(polymnia_workspaces=["sales"]))
    assert principal.enters("sales")
    assert not principal.enters("hr")
    only_own = recognise(signed(polymnia_workspaces=[]))
    assert only_own.workspaces == frozenset({"personal-alice"})


def test_a_renewed_token_is_the_same_principal_and_one_with_other_rights_is_not(
    recognise: Callable[[str], Principal],
) -> None:
    old, new = (
        recognise(signed(exp=int(time.time()) + 10)),
        recognise(signed(exp=int(time.time()) + 1000)),
    )
    assert old.is_same(new)
    assert not old.is_same(recognise(signed(scope="polymnia:admin")))
    assert not old.is_same(recognise(signed(sub="bob")))


def test_our_token_and_a_subject_of_the_same_name_are_two_principals(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem(RSA))
    tokens = file_tokens(tmp_path / "tokens")
    authenticator = Authenticator(tokens, provider=open_provider(ISSUER, AUDIENCE, str(file)))
    ours = authenticator.admit(tokens.create("alice", can="write"))
    theirs = authenticator.admit(signed())
    assert (ours.name, ours.can) == (theirs.name, theirs.can)
    assert not ours.is_same(theirs)


def test_replaced_keys_take_effect_immediately(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(jwks(one=RSA))
    recognise = open_provider(ISSUER, AUDIENCE, str(file))
    token = signed(kid="one")
    assert recognise(token).name == "alice"
    file.write_text(jwks(two=OTHER_RSA, three=EC))
    with pytest.raises(NotAdmitted):
        recognise(token)
    assert recognise(signed(key=OTHER_RSA, kid="two")).name == "alice"


def test_without_its_key_file_the_provider_rejects_all_tokens(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(jwks(one=RSA))
    recognise = open_provider(ISSUER, AUDIENCE, str(file))
    file.unlink()
    with pytest.raises(NotAdmitted, match="cannot be checked"):
        recognise(signed(kid="one"))


PRIVATE = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "{}", '{"keys":[]}', '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}', PRIVATE],
)
def test_a_file_without_a_public_key_is_reported_at_the_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(SettingsError, match="not a public key"):
        open_provider(ISSUER, AUDIENCE, str(file))


@pytest.mark.parametrize(
    "given",
    [
        {"jwt_issuer": ISSUER},
        {"jwt_audience": AUDIENCE},
        {"jwt_key": "key"},
        {"oidc_client_id": "memory"},
    ],
)
def test_an_incomplete_provider_is_rejected(given: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="incomplete identity provider"):
        provider_of(Settings(**given))  # type: ignore[arg-type]  # all of these are text


def test_a_provider_for_logins_needs_a_table_of_groups() -> None:
    with pytest.raises(SettingsError, match="what people may do"):
        provider_of(Settings(jwt_issuer=ISSUER, oidc_client_id="memory"))
