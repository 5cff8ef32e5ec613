"""File names for entities and notes that are valid everywhere and never leave their folder."""

import re
import unicodedata
from hashlib import sha256

from polymnia.search.terms import fold

MAX_STEM_BYTES = 180
# Characters that mean something to a file system, Obsidian or a link, and invisible ones.
_FORBIDDEN = re.compile(
    r'[<>:"/\\|?*#^\[\]\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]'
)
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE
)


def safe_stem(name: str) -> str:
    """Return a file name without its ending: the name itself if it can be one."""
    stem = _FORBIDDEN.sub("-", unicodedata.normalize("NFC", name))[:100]
    while len(stem.encode()) > MAX_STEM_BYTES:
        stem = stem[:-1]
    stem = re.sub(r"^[.\s~]+|[.\s]+$", "", stem) or "unnamed"
    return f"{stem}_" if _RESERVED.fullmatch(stem) else stem


def is_stem_of(stem: str, name: str) -> bool:
    """Return True if `Stems` may have given this file name to the name."""
    return stem == safe_stem(name) or stem.startswith(f"{safe_stem(name)} ~")


class FileStems:
    """File names in use. Some file systems take names for the same that differ only in case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def reserve(self, stem: str) -> None:
        """Do not give this one to anything else."""
        self._taken.add(fold_stem(stem))

    def allocate(self, name: str) -> str:
        """Return a file name for this name that is not in use, and reserve it."""
        stem = safe_stem(name)
        digest = sha256(name.encode(errors="replace"))
        while fold_stem(stem) in self._taken:
            stem = f"{safe_stem(name)} ~{digest.hexdigest()[:6]}"
            digest.update(b"again")
        self.reserve(stem)
        return stem


def fold_stem(stem: str) -> str:
    """Return the form in which file systems and editors compare file names."""
    return unicodedata.normalize("NFC", fold(unicodedata.normalize("NFKC", stem)))
