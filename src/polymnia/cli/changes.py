"""`polymnia history`, `undo` and `trash`: who changed what, and how to take it back."""

import argparse
from collections.abc import Sequence

from msgspec import to_builtins
from msgspec.structs import replace

from polymnia.cli.common import (
    Subparsers,
    add_limit_argument,
    add_memory_arguments,
    change_label,
    describe_counts,
    format_time,
    print_json,
    print_lines,
    print_result,
    print_table,
    printable,
    show_work,
    store_option,
    undo_command,
    workspace_label,
    workspace_option,
)
from polymnia.engine.history import changes as history
from polymnia.engine.history import trash
from polymnia.engine.history.changes import Difference
from polymnia.engine.history.undo import changes_since, undo
from polymnia.engine.reads import FactUse, count_uses, reads_since
from polymnia.errors import BadInput
from polymnia.model import Change, Rows, TrashItem, split_actor
from polymnia.model.changes import FactRead
from polymnia.search.terms import count_noun
from polymnia.search.times import iso_time, parse_moment
from polymnia.settings import Settings
from polymnia.stores.open import file_bytes
from polymnia.workspace_choice import (
    OpenedWorkspace,
    find_sole_workspace,
    open_workspace,
    open_workspaces_to_read,
)

_MAX_DIFFERENCES = 20


def add_history(commands: Subparsers) -> None:
    parser = commands.add_parser("history", help="list changes, newest first")
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="only changes to the entity or note with that name",
    )
    parser.add_argument(
        "--actor", metavar="NAME", help="only changes of clients whose name contains this"
    )
    parser.add_argument(
        "--operation", action="append", metavar="NAME", help="only these operations (repeatable)"
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="only changes since then: 2026-04-27, or an age such as 7d",
    )
    parser.add_argument(
        "--before",
        metavar="ID",
        help="only changes before this one, in its workspace, for the next page",
    )
    add_limit_argument(parser, 20, "at most this many")
    add_memory_arguments(parser)


def add_audit(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "audit",
        help="show which facts were read, by whom and when",
        description="Show which facts clients read, newest first, as far back as the setting "
        "audit_days keeps it.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="only facts of this entity")
    parser.add_argument(
        "--since", metavar="TIME", help="only reads since then: 2026-04-27, or an age such as 7d"
    )
    parser.add_argument("--by", metavar="NAME", help="only reads of this client, token or user")
    parser.add_argument(
        "--count", action="store_true", help="say how often each fact was read instead"
    )
    add_limit_argument(parser, 50, "at most this many")
    add_memory_arguments(parser)


def add_undo(commands: Subparsers) -> None:
    parser = commands.add_parser("undo", help="take back changes, as one new change")
    parser.add_argument(
        "changes",
        metavar="ID",
        nargs="*",
        help="ids of changes as `polymnia history` shows them, e.g. personal:3",
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="all changes since then: 2026-04-27, or an age such as 7d",
    )
    parser.add_argument(
        "--actor",
        metavar="NAME",
        help="with --since: only those of clients whose name contains this",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    parser.add_argument(
        "--skip-conflicts",
        action="store_true",
        help="undo everything except what was changed since",
    )
    add_memory_arguments(parser)


def add_trash(commands: Subparsers) -> None:
    parser = commands.add_parser("trash", help="list, restore and purge deleted memories")
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia trash"
    )
    listing = actions.add_parser("list", help="list what was deleted, latest first")
    restore = actions.add_parser("restore", help="restore something that was deleted")
    restore.add_argument(
        "what",
        metavar="ID",
        help="an id from the list, the name of an entity, or the key of a note",
    )
    purge = actions.add_parser(
        "purge", help="delete permanently what is in the trash, including its text"
    )
    purge.add_argument(
        "--older-than",
        type=float,
        metavar="DAYS",
        help="only what was deleted more than DAYS days ago (default: trash_days)",
    )
    for action in (listing, restore, purge):
        add_memory_arguments(action)


def run_history(settings: Settings, options: argparse.Namespace) -> int:
    """Print the changes. Return 0 if there are any, 1 if not. Raise BadInput, NotSupported."""
    before = None
    if options.before:
        settings, (before,) = _parse_changes(settings, [options.before])
    since = parse_moment(options.since, "--since") if options.since else None
    entries: list[tuple[OpenedWorkspace, Change, list[Difference]]] = []
    older: dict[str, int] = {}
    with open_workspaces_to_read(settings) as workspaces:
        for workspace in workspaces:
            memory = workspace.memory
            if not memory.store.capabilities.history and not workspace.is_sole:
                continue
            page = history.latest(
                memory,
                limit=options.limit,
                before=before,
                actor=options.actor,
                names=[options.name] if options.name else None,
                operations=options.operation,
                since=since,
            )
            names = history.names_of(memory, options.name) if options.name else None
            for change in page.changes:
                entries.append((workspace, change, history.differences(change, names)))
            if page.next is not None:
                older[workspace.name] = page.next
    entries.sort(key=lambda entry: -entry[1].at)
    del entries[options.limit :]
    if options.json:
        shapes = []
        for workspace, change, differences in entries:
            shape = {"workspace": workspace.name, "id": change.id, "at": iso_time(change.at)}
            shape |= {"actor": change.actor, "operation": change.operation}
            shapes.append({**shape, "differences": differences})
        print_json({"changes": shapes, "next": older.get(workspaces[0].name)})
        return 0 if entries else 1
    for workspace, change, differences in entries:
        label = change_label(workspace, change.id)
        head = f"change {label}  {format_time(change.at)}  {change.actor}  {change.operation}"
        lines = [f"  {item.describe()}" for item in differences[:_MAX_DIFFERENCES]]
        print_lines([head, *lines])
        more = len(differences) - _MAX_DIFFERENCES
        if more > 0:
            print(f"  and {more} more")
    if not entries:
        where = " and ".join(workspace_label(settings, workspace) for workspace in workspaces)
        print(f"no changes found in {where}")
    for workspace in workspaces:
        shown = [change.id for owner, change, _ in entries if owner is workspace]
        if workspace.name in older and shown:
            label = change_label(workspace, min(shown))
            print(f"older: polymnia history --before {label}{store_option(settings)}")
    return 0 if entries else 1


def run_audit(settings: Settings, options: argparse.Namespace) -> int:
    """Print who read which facts. Raise BadInput."""
    since = parse_moment(options.since, "--since") if options.since else 0
    with open_workspace(settings, read_only=True) as workspace:
        reads = reads_since(workspace.memory, since, entity=options.name or "")
    if options.by:
        reads = [one for one in reads if options.by in (one.actor, *split_actor(one.actor))]
    if not reads and not options.json:
        print("no reads are recorded; the server's setting audit_days turns it on")
    elif options.count:
        uses = count_uses(reads)[: options.limit]
        if options.json:
            print_json([{**to_builtins(use), "last_at": iso_time(use.last_at)} for use in uses])
        else:
            rows = [("read", "last", "fact")]
            for use in uses:
                rows.append((str(use.count), format_time(use.last_at), _fact_label(use)))
            print_table(rows)
    elif options.json:
        print_json([{**to_builtins(one), "at": iso_time(one.at)} for one in reads[: options.limit]])
    else:
        rows_of_reads = [("at", "by", "tool", "fact")]
        for one in reads[: options.limit]:
            rows_of_reads.append((format_time(one.at), one.actor, one.tool, _fact_label(one)))
        print_table(rows_of_reads)
    return 0


def _fact_label(read: FactRead | FactUse) -> str:
    """Return a fact as it is named elsewhere; ordinal 0 is the entity itself."""
    name = read.entity or "(erased or deleted)"
    return f"{name} #{read.ordinal}" if read.ordinal else name


def run_undo(settings: Settings, options: argparse.Namespace) -> int:
    """Undo. Return 0 if that worked or there was nothing to do, 1 if conflicts prevented it.

    Raise BadInput.
    """
    if bool(options.changes) == bool(options.since):
        raise BadInput("say what to undo: ids of changes, or --since TIME")
    if options.actor and not options.since:
        raise BadInput("--actor needs --since TIME")
    changes: list[int] = []
    if options.changes:
        settings, changes = _parse_changes(settings, options.changes)
    # A dry run writes nothing, but opens the store for writing, as the undo itself will.
    with open_workspace(settings) as workspace, show_work("undoing"):
        if not changes:
            since = parse_moment(options.since, "--since")
            changes = changes_since(workspace.memory, since, actor=options.actor)
        receipt = undo(
            workspace.memory,
            changes,
            by="polymnia undo",
            skip_conflicts=options.skip_conflicts,
            dry_run=options.dry_run,
        )
    if options.json:
        print_json(
            {
                "workspace": workspace.name,
                "change": receipt.change or None,
                "dry_run": options.dry_run,
                "undone": list(receipt.undone),
                "removed": _counts(receipt.before),
                "restored": _counts(receipt.after),
                "conflicts": receipt.conflicts,
            }
        )
    else:
        lines = []
        for conflict in receipt.conflicts:
            label = change_label(workspace, conflict.change)
            lines.append(f"conflict: {conflict.what}: {conflict.reason} (change {label})")
        removed, restored = _describe_rows(receipt.before), _describe_rows(receipt.after)
        where = workspace_label(settings, workspace)
        if receipt.change:
            label = change_label(workspace, receipt.change)
            lines.append(f"undone as change {label}: removed {removed}, restored {restored}")
            again = undo_command(settings, workspace, [receipt.change])
            lines.append(f"to take it back: {again}")
        elif options.dry_run:
            lines.append(f"would remove {removed} and restore {restored} in {where}")
        elif receipt.conflicts:
            lines.append(f"nothing was undone in {where}; --skip-conflicts undoes the rest")
        else:
            lines.append(f"nothing to undo in {where}: everything is as it was before")
        print_lines(lines)
    was_prevented = bool(receipt.conflicts) and not receipt.change and not options.dry_run
    return 1 if was_prevented else 0


def _parse_changes(settings: Settings, labels: Sequence[str]) -> tuple[Settings, list[int]]:
    """Return the settings with the workspace that the labels name, and the numbers of the changes.

    Raise BadInput if a label is not one, or the workspace is not clear.
    """
    names: dict[str, None] = {}
    numbers: list[int] = []
    for label in labels:
        name, _, number = label.rpartition(":")
        if not number.isdecimal():
            raise BadInput(f"{label!r} is not the id of a change: use e.g. personal:3")
        names[name] = None
        numbers.append(int(number))
    if settings.workspace:
        names[settings.workspace] = None
        names.pop("", None)
    if len(names) > 1:
        raise BadInput(
            "these changes are in several workspaces: name each id with its workspace, "
            "and undo one workspace at a time"
        )
    (name,) = names
    if not name:
        name = find_sole_workspace(settings, example=numbers[0])
    return replace(settings, workspace=name), numbers


def _counts(rows: Rows) -> dict[str, int]:
    return {
        "entities": len(rows.entities),
        "facts": rows.fact_count,
        "relations": len(rows.relations),
        "notes": len(rows.notes),
    }


def _describe_rows(rows: Rows) -> str:
    nouns = ("entity", "fact", "relation", "note")
    counts = zip(nouns, _counts(rows).values(), strict=True)
    return ", ".join(count_noun(count, noun) for noun, count in counts if count) or "nothing"


def run_trash(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput."""
    if options.action == "list":
        _list_trash(settings, as_json=options.json)
        return 0
    with open_workspace(settings) as workspace:
        if options.action == "restore":
            rows = trash.restore(workspace.memory, options.what, by="polymnia trash")
            names = [entity.name for entity in rows.entities]
            names += [owner.entity for owner in rows.facts]
            names += [note.key for note in rows.notes]
            sentence = f"restored {', '.join(names) or options.what}"
            if rows.entities:
                sentence += f", with {count_noun(len(rows.relations), 'relation')}"
            sentence += f" in {workspace_label(settings, workspace)}"
            result = {
                "workspace": workspace.name,
                "restored": names or [options.what],
                "relations": len(rows.relations),
            }
            print_result(printable(sentence), result, as_json=options.json)
        else:
            days = options.older_than
            if days is None:
                days = settings.trash_days
            if options.older_than is None and not days:
                raise BadInput(
                    "purge needs an age: use --older-than DAYS (0 purges everything), "
                    "or set trash_days"
                )
            megabytes = (file_bytes(workspace.memory.store.url) or 0) // 1_000_000
            work = f"purging, and writing {megabytes:,} MB anew" if megabytes else "purging"
            with show_work(work):
                counts = trash.purge(workspace.memory, days=days)
            purged = describe_counts(counts)
            if counts.notes:
                purged += f", {count_noun(counts.notes, 'note')}"
            sentence = f"purged from {workspace_label(settings, workspace)}: {purged}"
            print_result(sentence, counts, as_json=options.json)
    return 0


def _list_trash(settings: Settings, *, as_json: bool) -> None:
    shapes = []
    with open_workspaces_to_read(settings) as workspaces:
        for workspace in workspaces:
            rows = []
            for item in trash.items(workspace.memory):
                (kind, title), at = _describe_item(item), iso_time(item.deleted_at) or ""
                rows.append((item.id, at[:19].replace("T", " "), kind, title))
                shape = {"workspace": workspace.name, "id": item.id, "kind": kind, "what": title}
                shapes.append({**shape, "deleted_at": at})
            if as_json:
                continue
            where = workspace_label(settings, workspace)
            if not rows:
                print(f"the trash of {where} is empty")
                continue
            print_table(rows)
            options = f"{store_option(settings)}{workspace_option(workspace)}"
            items = f"{count_noun(len(rows), 'item')} in the trash of {where}"
            print(f"{items}; to restore one: polymnia trash restore ID{options}")
    if as_json:
        print_json(shapes)


def _describe_item(item: TrashItem) -> tuple[str, str]:
    """Return what kind of thing was deleted, and what it was."""
    rows = item.rows
    if rows.entities:
        (entity,) = rows.entities
        facts = count_noun(len(entity.facts), "fact")
        relations = count_noun(len(rows.relations), "relation")
        return "entity", f"{entity.name} ({entity.type}): {facts}, {relations}"
    if rows.facts:
        (owner,) = rows.facts
        return "fact", f"{owner.entity}: {owner.facts[0].text}"
    if rows.relations:
        (relation,) = rows.relations
        return "relation", f"{relation.source} -{relation.type}-> {relation.target}"
    (note,) = rows.notes
    return "note", f"{note.key}: {note.content}"
