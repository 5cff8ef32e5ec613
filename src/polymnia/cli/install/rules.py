"""`polymnia install CLIENT --rules`: tell the client's agent when to use the memory."""

from pathlib import Path

from polymnia.clients.rules import RULES, RULES_FILES, add_rules, remove_rules
from polymnia.clients.table import ClientProgram
from polymnia.errors import BadInput
from polymnia.settings import client_roots


def change_rules(
    client: ClientProgram, project: Path | None, *, remove: bool, only_print: bool
) -> None:
    """Write the rules of a project or of the user, remove them or print them. Raise BadInput."""
    rules = RULES_FILES.get(client.name)
    if rules is None:
        raise BadInput(f"there are no rules to add to {client.title}: use {', '.join(RULES_FILES)}")
    if only_print:
        print(f"{rules.head}{RULES}", end="")
        return
    path = rules.path(client_roots(), project)
    if path is None:
        scope = "project" if project is None else "user"
        raise BadInput(f"{client.title} has no rules for this scope: use --scope {scope}")
    if remove:
        kept = remove_rules(rules, path)
        print(f"removed the rules from {path}")
    else:
        kept = add_rules(rules, path)
        print(f"{path} says when to recall and to remember")
    if kept is not None:
        print(f"the former file is {kept}")
