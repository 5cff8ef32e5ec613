"""An identity provider's keys, and the tokens that it signs."""

import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER, AUDIENCE = "https://id.example.com", "https://memory.example.com/mcp"
RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, Any] = {"RS256": RSA, "PS256": RSA, "ES256": EC, "EdDSA": ED}


def pem(key: Any) -> str:
    return str(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    )


def claims(**changed: Any) -> dict[str, Any]:
    """Those of a good token; what is given as None is left out."""
    now = int(time.time())
    given = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "exp": now + 300,
        "scope": "openid polymnia:write",
    }
    return {name: value for name, value in {**given, **changed}.items() if value is not None}


def signed(
    algorithm: str = "RS256", key: Any = None, kid: str | None = None, **changed: Any
) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(
        claims(**changed), key or KEYS[algorithm], algorithm=algorithm, headers=headers
    )
