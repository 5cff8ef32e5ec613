"""Tokens of an identity provider: JSON Web Tokens, checked against the provider's keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from polymnia.errors import NotAdmitted, SettingsError
from polymnia.model import CAPABILITIES, Capability, Principal

SCOPES = {f"polymnia:{each}": each for each in CAPABILITIES}
_WORKSPACES = "polymnia_workspaces"


def open_provider(issuer: str, audience: str, key_file: str) -> Callable[[str], Principal]:
    """What recognises tokens that the issuer made for the audience. Raises SettingsError.

    The key file is the provider's public key, as PEM or as a JWKS document.
    """
    try:
        import jwt

        from polymnia.auth.keys import Keys
    except ImportError as exc:
        raise SettingsError("tokens of an identity provider need `pip install polymnia[oauth]`") from exc
    keys = Keys(Path(key_file))

    def recognise(token: str) -> Principal:
        try:
            key = keys.named(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key.public,
                algorithms=key.algorithms,
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
    can = [SCOPES[each] for each in map(str, scopes) if each in SCOPES] if isinstance(scopes, list) else []
    if not can:
        raise NotAdmitted(f"the token grants none of {', '.join(SCOPES)}")
    where = claims.get(_WORKSPACES)
    if where is not None and not (isinstance(where, list) and all(isinstance(each, str) for each in where)):
        raise NotAdmitted(f"the claim {_WORKSPACES} must be a list of names")
    name = str(claims["sub"])
    if not name.strip():
        raise NotAdmitted("the claim sub must name somebody")
    most: Capability = max(can, key=CAPABILITIES.index)
    return Principal(
        name=name,
        can=most,
        workspaces=None if where is None else frozenset(where),
        id=f"jwt:{name}",
        until=int(claims["exp"]),
    )
