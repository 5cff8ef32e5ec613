"""Estimate how many tokens a text costs a language model, and cut texts to a budget."""

import re
from functools import cache

# Tokenizers differ, and the model's own is not available. The estimate should be no lower than
# any of them on ordinary text. Count a token for each started four letters of a word, for each
# started two digits, for each other ASCII character and each line break, and for two bytes of
# anything else. Single spaces
# belong to the word that follows.
# Compiled at the first use: a server's start does not need it.
_compiled = cache(re.compile)
_PIECE = r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|\n|[^ \nA-Za-z0-9]|  +"
ELLIPSIS = " …"


def estimate_tokens(text: str) -> int:
    """Return about how many tokens the text has, rather too many than too few."""
    return sum(map(_piece_tokens, _compiled(_PIECE).findall(text)))


def count_tokens(text: str) -> int:
    """Return about how many tokens prose has: a token for four characters, or for two bytes of
    other scripts. It is nearer to the truth than `estimate_tokens`, but may be too low.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    others = sum(1 for character in text if ord(character) > 0x24F)  # beyond Latin letters
    other_bytes = len(text.encode(errors="replace")) - len(text)
    return (len(text) - others + 3) // 4 + (others and (other_bytes + others) // 2)


def shorten_to(text: str, max_tokens: int) -> str:
    """Return the text; cut at a word and marked with an ellipsis if it has more tokens."""
    if estimate_tokens(text) <= max_tokens:
        return text
    left = max_tokens - estimate_tokens(ELLIPSIS)
    end = 0
    for piece in _compiled(_PIECE).finditer(text):
        left -= _piece_tokens(piece[0])
        if left < 0:
            break
        end = piece.end()
    return text[:end].rstrip() + ELLIPSIS


def _piece_tokens(piece: str) -> int:
    first = piece[0]
    if not first.isascii():
        return (len(piece.encode(errors="replace")) + 1) // 2
    if first.isdigit():
        return (len(piece) + 1) // 2
    return (len(piece) + 3) // 4 if first.isalpha() else 1
