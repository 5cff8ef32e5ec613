"""Arguments from JSON into a tool's struct."""

from typing import Any

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import Decoder

from polymnia.errors import BadInput


def decode_arguments(decoder: Decoder[Any], raw: bytes | Raw, *, root: str = "arguments") -> Any:
    """The arguments as the decoder's struct; null stands for none at all.

    Raises BadInput with the path and what was expected there.
    """
    try:
        return decoder.decode(raw)
    except ValidationError as exc:
        if bytes(raw) == b"null":
            return decode_arguments(decoder, b"{}", root=root)
        from polymnia.dialects.mistakes import sentence  # needed only when something is wrong

        raise BadInput(sentence(str(exc), decoder.type, root)) from exc
    except (DecodeError, UnicodeDecodeError) as exc:
        raise BadInput(f"{root}: not valid JSON ({exc})") from exc
    except RecursionError as exc:
        raise BadInput(f"{root}: nested too deeply") from exc
