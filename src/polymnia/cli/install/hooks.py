"""`polymnia install CLIENT --hooks`: let a client use the memory by itself."""

import sys
from pathlib import Path

from polymnia.cli.common import print_json
from polymnia.clients.connect import own_command
from polymnia.clients.hooks import (
    HOOK_FILES,
    PLUGIN_FILES,
    add_hooks,
    plugin_text,
    remove_hooks,
    remove_plugin,
    write_plugin,
)
from polymnia.clients.table import ClientProgram
from polymnia.errors import BadInput
from polymnia.settings import client_roots


def change_hooks(
    client: ClientProgram, project: Path | None, *, remove: bool, only_print: bool
) -> None:
    """Add the hooks of a project or of the user, remove them or print them. Raise BadInput."""
    if client.name in PLUGIN_FILES:
        # Its hooks are functions of a plugin, which is a file of its own.
        path = PLUGIN_FILES[client.name].path(client_roots(), project)
        text = plugin_text(own_command())
        if remove:
            remove_plugin(path)
            print(f"removed {path}")
        elif only_print:
            print(text, end="")
            print(f"# in {path}", file=sys.stderr)
        else:
            write_plugin(path, text)
            print(f"{path} is the plugin; start {client.title} again")
        return
    hooks = HOOK_FILES.get(client.name)
    if hooks is None:
        instead = "it has none; `polymnia install --rules` prints rules for its AGENTS.md"
        if client.has_plugin:
            instead = "its hooks come with the plugin"
        if client.name == "claude-code":
            instead += (
                ": run `claude plugin marketplace add CHECKOUT` with the path of your checkout, "
                "then `claude plugin install polymnia@polymnia`"
            )
        raise BadInput(f"there are no hooks to add to {client.title}: {instead}")
    path = hooks.path(client_roots(), project)
    if remove:
        kept = remove_hooks(hooks, path)
        if kept is None:
            raise BadInput(f"{path} has no hooks of Polymnia")
        print(f"removed the hooks from {path}\nthe former file is {kept}")
        return
    command = own_command()
    if only_print:
        entries = {event: [hooks.entry(command, event)] for event in hooks.events}
        print_json({**hooks.fixed, "hooks": entries})
        return
    kept = add_hooks(hooks, path, command)
    print(f"{path} has hooks for {', '.join(hooks.events)}")
    if kept is not None:
        print(f"the former file is {kept}")
