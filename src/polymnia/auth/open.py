"""From what was chosen to a door: where a store's tokens are kept, and which provider is trusted."""

from pathlib import Path

from polymnia.auth.door import Recognise
from polymnia.auth.tokens import Tokens
from polymnia.errors import SettingsError
from polymnia.stores.open import is_in_memory, store_kind


def tokens_of(store: str, file: str = "") -> Tokens | None:
    """The tokens of a store: in the file that was named, or beside the store; None for one without a place."""
    if file:
        return Tokens(Path(file))
    kind, path = store_kind(store)
    if is_in_memory(kind, path):
        return None
    if kind == "directory":
        return Tokens(Path(path) / "_meta.tokens")
    return Tokens(Path(path).with_name(f"{Path(path).name}.tokens"))


def provider_of(issuer: str, audience: str, key_file: str) -> Recognise | None:
    """What recognises an identity provider's tokens; None where none was named. Raises SettingsError."""
    if not (issuer or audience or key_file):
        return None
    if not (issuer and audience and key_file):
        raise SettingsError("an identity provider needs all three: jwt_issuer, jwt_audience and jwt_key")
    from polymnia.auth.provider import open_provider

    return open_provider(issuer, audience, key_file)
