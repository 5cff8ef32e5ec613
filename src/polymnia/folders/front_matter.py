"""The properties at the start of a Markdown file: the part of YAML that editors of notes write."""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import DecodeError
from msgspec.json import decode, encode

Value = str | list[str]
_FENCE = "---"
_KEY = re.compile(
    r"""(?:"([^"\\]+)"|'([^']+)'|([^\s:#'"\[\]{},&*!|>%@`-][^:]{0,200}?))[ \t]{0,20}:(?:\s+(.*))?"""
)
_PLAIN = re.compile(r"[^\W_][\w ./+()-]*(?<! )|\d{4}-\d\d-\d\dT[\d:.]+Z")
# Plain texts that YAML takes for something else.
_SPECIAL = re.compile(
    r"(?i:true|false|yes|no|on|off|null|y|n)|[\d.+-][\d_.,+-]*(?:e[\d+-]*)?|0[xob].*", re.IGNORECASE
)
_ITEM = re.compile(r"\s*- *(.*)")
_FLOW_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]*)\s*(?:,|$)""")


def split_file(data: bytes) -> tuple[dict[str, Value], str]:
    """Return the properties and the body of a file."""
    return split_front_matter(decode_file(data))


def decode_file(data: bytes) -> str:
    """Return the text of a file, with line feeds as the only line ends."""
    return (
        data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\x00", "\ufffd")
    )


def split_front_matter(text: str) -> tuple[dict[str, Value], str]:
    """Return the properties of a file and what follows them. Values are texts and lists of texts."""
    lines = text.split("\n")
    end = _end_of_properties(lines)
    if not end:
        return {}, text
    return dict(_properties(lines[1:end])), "\n".join(lines[end + 1 :])


def property_lines(text: str) -> dict[str, str]:
    """Return the properties of a file as they are written, each with all its lines, by their keys."""
    lines = text.split("\n")
    return {key: "\n".join(own) for key, _, own in _groups(lines[1 : _end_of_properties(lines)])}


def add_property_lines(text: str, added: str) -> str:
    """Return a file that begins with what `front_matter` returns, with more properties after the others."""
    return text.replace(f"\n{_FENCE}\n", f"\n{added}\n{_FENCE}\n", 1)


def front_matter(properties: Mapping[str, str | Sequence[str]]) -> str:
    """Return the lines of the properties, with their fences."""
    lines = [_FENCE]
    for key, value in properties.items():
        if isinstance(value, str):
            lines.append(f"{key}: {_scalar(value)}")
        else:
            lines += [f"{key}:", *[f"  - {_scalar(each)}" for each in value]]
    return "\n".join([*lines, _FENCE, ""])


def _end_of_properties(lines: Sequence[str]) -> int:
    """Return the line that ends the properties; 0 if there are none."""
    if lines[0].rstrip() != _FENCE:
        return 0
    return next(
        (number for number, line in enumerate(lines[1:], 1) if line.rstrip() in (_FENCE, "...")), 0
    )


def _scalar(text: str) -> str:
    """Return the text as YAML: JSON strings are YAML too."""
    if len(text) <= 200 and _PLAIN.fullmatch(text) and not _SPECIAL.fullmatch(text):
        return text
    return encode(text).decode()


def _properties(lines: Sequence[str]) -> Iterator[tuple[str, Value]]:
    """Yield what is at the top level and, as `key.inner`, one level below. Skip lines that are no properties."""
    for key, value, (_, *block) in _groups(lines):
        yield key, _value(value, block)
        if not value:
            inner = [line.strip() for line in block if line.startswith(("  ", "\t"))]
            nested = [
                found for line in inner if (found := _KEY.fullmatch(line)) and found[3] and found[4]
            ]
            yield from ((f"{key}.{found[3].strip()}", _value(found[4], ())) for found in nested)


def _groups(lines: Sequence[str]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield the key of each property, what follows it on its line, and all its lines."""
    number = 0
    while number < len(lines):
        start, found = number, _KEY.fullmatch(lines[number].rstrip())
        number += 1
        if not found:
            continue
        while number < len(lines) and (
            lines[number][:1] in (" ", "\t", "") or _is_item(lines[number])
        ):
            number += 1
        key = next(each for each in found.groups()[:3] if each is not None).strip()
        yield key, found[4] or "", lines[start:number]


def _is_item(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _value(value: str, block: Sequence[str]) -> Value:
    if value[:1] in ("|", ">"):
        return _block_text(block, folded=value[0] == ">")
    value = _without_comment(value)
    if value.startswith("[") and value.endswith("]"):
        parts = [_text(each[1].strip()) for each in _FLOW_PART.finditer(value[1:-1])]
        return [each for each in parts if each]
    if value:
        return _text(
            " ".join(
                [value, *[each.strip() for each in block if each.strip() and value[0] not in "\"'"]]
            )
        )
    items = [found[1] for line in block if (found := _ITEM.fullmatch(line)) and found[1].strip()]
    return [_text(_without_comment(each)) for each in items] if items else ""


def _block_text(block: Sequence[str], *, folded: bool) -> str:
    indent = min([len(line) - len(line.lstrip()) for line in block if line.strip()], default=0)
    return (" " if folded else "\n").join([line[indent:] for line in block]).strip()


def _without_comment(value: str) -> str:
    value = value.strip()
    return (
        value if value[:1] in ("'", '"') else re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip()
    )


def _text(scalar: str) -> str:
    if scalar.startswith('"'):
        try:
            return decode(scalar, type=str)
        except (DecodeError, UnicodeDecodeError):
            return scalar.strip('"')
    if len(scalar) > 1 and scalar[0] == scalar[-1] == "'":
        return scalar[1:-1].replace("''", "'")
    return "" if scalar in ("~", "null") else scalar
