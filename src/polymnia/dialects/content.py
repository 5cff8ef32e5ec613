"""What an answer may hold besides text: images, sound, and resources in full."""

from msgspec import UNSET, Struct, UnsetType


class Image(Struct, frozen=True, tag_field="type", tag="image", rename="camel"):
    """A picture."""

    data: bytes
    mime_type: str


class Audio(Struct, frozen=True, tag_field="type", tag="audio", rename="camel"):
    """Something to hear."""

    data: bytes
    mime_type: str


class Contents(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is found at an address: a text, or else bytes."""

    uri: str
    mime_type: str
    text: str | UnsetType = UNSET
    blob: bytes | UnsetType = UNSET


class Embedded(Struct, frozen=True, tag_field="type", tag="resource"):
    """A resource, within the answer instead of at its address."""

    resource: Contents


Block = Image | Audio | Embedded


def contents(uri: str, mime_type: str, data: str | bytes) -> Contents:
    """What was read at the address, in the form it has for clients."""
    if isinstance(data, bytes):
        return Contents(uri, mime_type, blob=data)
    return Contents(uri, mime_type, data)
