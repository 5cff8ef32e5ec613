"""From a dialect's name to the dialect; only the one asked for is imported."""

from importlib import import_module

from polymnia.dialects.base import Dialect
from polymnia.errors import SettingsError

# Name -> the module that holds its `DIALECT`.
DIALECTS = {
    "graph": "polymnia.dialects.graph",
    "project": "polymnia.dialects.project",
    "reference": "polymnia.dialects.reference",
}


def open_dialect(name: str) -> Dialect:
    """The dialect of that name. Raises SettingsError when there is none."""
    if name not in DIALECTS:
        raise SettingsError(f"there is no dialect {name!r}; this version speaks {', '.join(sorted(DIALECTS))}")
    dialect: Dialect = import_module(DIALECTS[name]).DIALECT
    return dialect
