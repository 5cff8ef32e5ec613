"""From a dialect's name to the dialect; only the one asked for is imported."""

from importlib import import_module

from polymnia.dialects.base import Dialect, NoteRules
from polymnia.errors import SettingsError

# Name -> the module that holds its `DIALECT` and, where rules matter to it, the function `under`.
DIALECTS = {
    "graph": "polymnia.dialects.graph",
    "project": "polymnia.dialects.project",
    "reference": "polymnia.dialects.reference",
    "vault": "polymnia.dialects.vault",
}


def open_dialect(name: str, rules: NoteRules | None = None) -> Dialect:
    """The dialect of that name, under those rules where they matter to it. Raises SettingsError when there is none."""
    if name not in DIALECTS:
        raise SettingsError(f"there is no dialect {name!r}; this version speaks {', '.join(sorted(DIALECTS))}")
    module = import_module(DIALECTS[name])
    dialect: Dialect = module.DIALECT if rules is None or not hasattr(module, "under") else module.under(rules)
    return dialect
