"""Tokens of an identity provider: JSON Web Tokens, checked against the provider's key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from polymnia.errors import NotAdmitted, SettingsError
from polymnia.model import CAPABILITIES, Capability, Principal

SCOPES = {f"polymnia:{each}": each for each in CAPABILITIES}
# Only signatures that the provider alone can make.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_WORKSPACES = "polymnia_workspaces"


def open_provider(issuer: str, audience: str, key_file: str) -> Callable[[str], Principal]:
    """What recognises tokens that the issuer made for the audience. Raises SettingsError.

    The key file is the provider's public key, as PEM or as a JWKS document.
    """
    try:
        import jwt
    except ImportError as exc:
        raise SettingsError("tokens of an identity provider need `pip install polymnia[oauth]`") from exc
    keys = _keys(Path(key_file))

    def recognise(token: str) -> Principal:
        try:
            key = keys(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=issuer,
                audience=audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as exc:
            raise NotAdmitted(f"the token was refused: {exc}") from exc
        return principal_of(claims)

    return recognise


def principal_of(claims: dict[str, Any]) -> Principal:
    """Who the claims speak of. Raises NotAdmitted when they grant nothing here."""
    granted = claims.get("scope", claims.get("scp", ""))
    scopes = granted.split() if isinstance(granted, str) else granted
    can = [SCOPES[each] for each in scopes if each in SCOPES] if isinstance(scopes, list) else []
    if not can:
        raise NotAdmitted(f"the token grants none of {', '.join(SCOPES)}")
    where = claims.get(_WORKSPACES)
    if where is not None and not (isinstance(where, list) and all(isinstance(each, str) for each in where)):
        raise NotAdmitted(f"the claim {_WORKSPACES} must be a list of names")
    most: Capability = max(can, key=CAPABILITIES.index)
    return Principal(name=str(claims["sub"]), can=most, workspaces=None if where is None else frozenset(where))


def _keys(path: Path) -> Callable[[str | None], Any]:
    """From a key's id to the key."""
    import jwt

    try:
        text = path.read_text("utf-8")
        if text.lstrip().startswith("{"):
            known = {each.key_id: each.key for each in jwt.PyJWKSet.from_json(text).keys}
            return lambda identifier: _chosen(known, identifier)
    except (OSError, ValueError, jwt.PyJWTError) as exc:
        raise SettingsError(f"{path} is no key of an identity provider: {exc}") from exc
    return lambda identifier: text


def _chosen(known: dict[str | None, Any], identifier: str | None) -> Any:
    if identifier in known:
        return known[identifier]
    if identifier is None and len(known) == 1:
        return next(iter(known.values()))
    raise NotAdmitted("the token was signed with a key the server does not have")
