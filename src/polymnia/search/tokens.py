"""Estimate how many tokens a text costs a language model, and cut texts to a budget."""

import re

# Tokenizers differ, and no model's own is at hand. The estimate is meant to be no lower than any of them on ordinary
# text: a token for each started four letters of a word, each started two digits, each other ASCII character and each
# line break; a token for two bytes of anything else. Single spaces belong to the word that follows.
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|\n|[^ \nA-Za-z0-9]|  +")
ELLIPSIS = " …"


def estimate_tokens(text: str) -> int:
    """Return about how many tokens the text has, rather too many than too few."""
    return sum(map(_piece_tokens, _PIECE.findall(text)))


def shorten_to(text: str, max_tokens: int) -> str:
    """Return the text, cut at a word and marked with an ellipsis if it has more tokens than that."""
    if estimate_tokens(text) <= max_tokens:
        return text
    left = max_tokens - estimate_tokens(ELLIPSIS)
    end = 0
    for piece in _PIECE.finditer(text):
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
