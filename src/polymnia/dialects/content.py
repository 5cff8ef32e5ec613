"""Content blocks besides text: images, audio and embedded resources."""

from msgspec import UNSET, Struct, UnsetType


class Image(Struct, frozen=True, tag_field="type", tag="image", rename="camel"):
    """An image."""

    data: bytes
    mime_type: str


class Audio(Struct, frozen=True, tag_field="type", tag="audio", rename="camel"):
    """A sound."""

    data: bytes
    mime_type: str


class Contents(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The contents of a resource: text or bytes."""

    uri: str
    mime_type: str
    text: str | UnsetType = UNSET
    blob: bytes | UnsetType = UNSET


class Embedded(Struct, frozen=True, tag_field="type", tag="resource"):
    """A resource that is part of the reply."""

    resource: Contents


Block = Image | Audio | Embedded


def contents(uri: str, mime_type: str, data: str | bytes) -> Contents:
    """Return what was read at the URI in the form clients expect."""
    if isinstance(data, bytes):
        return Contents(uri, mime_type, blob=data)
    return Contents(uri, mime_type, data)
