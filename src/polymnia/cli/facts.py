"""`polymnia remember`, `revise` and `forget`: write a memory by hand, with the verbs of agents."""

import argparse
import sys
from pathlib import Path
from shlex import quote
from typing import Any

from polymnia.cli.common import (
    Subparsers,
    add_memory_arguments,
    print_json,
    print_lines,
    undo_command,
    unknown_name,
    workspace_label,
)
from polymnia.engine.facts.erase import erase, erased_remains, remark_on
from polymnia.engine.facts.forget import Unwanted, forget
from polymnia.engine.facts.remember import (
    EntityFacts,
    FactDraft,
    remember,
)
from polymnia.engine.facts.revise import Edit, Revision, revise
from polymnia.errors import BadInput, EntityNotFound
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.workspace_choice import open_workspace


def add_remember(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "remember",
        help="store facts about something",
        description="Create an entity, or add facts to one that is known.",
    )
    parser.add_argument("name", metavar="NAME", help="what the facts are about")
    parser.add_argument("facts", metavar="FACT", nargs="*", help="a short sentence; quote it")
    parser.add_argument("--type", default="", help="its type if it is new, e.g. person")
    parser.add_argument("--tag", action="append", default=[], help="a tag (repeatable)")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="read more facts from a file, one in each line; - is standard input",
    )
    add_memory_arguments(parser)


def add_revise(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "revise",
        help="change a fact, or the name, type, summary or tags of an entity",
        description="Put a newer fact in place of an old one, or change the entity itself. "
        "Relations follow a new name.",
    )
    parser.add_argument("name", metavar="NAME", help="the entity")
    parser.add_argument("old", metavar="OLD", nargs="?", help="the fact: its number or its text")
    parser.add_argument("new", metavar="NEW", nargs="?", help="the newer fact")
    parser.add_argument(
        "--wrong", action="store_true", help="OLD was never true: correct it instead of ending it"
    )
    parser.add_argument("--rename", metavar="NAME", help="the new name")
    parser.add_argument("--type", help="the new type")
    parser.add_argument("--summary", metavar="TEXT", help="the new summary")
    parser.add_argument("--tag", action="append", default=[], help="add a tag (repeatable)")
    parser.add_argument("--untag", action="append", default=[], help="remove a tag (repeatable)")
    add_memory_arguments(parser)


def add_forget(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "forget",
        help="delete facts, or a whole entity",
        description="Delete facts, or a whole entity with its relations. It can be undone, "
        "unless --erase removes them for good.",
    )
    parser.add_argument("name", metavar="NAME", help="the entity")
    parser.add_argument("facts", metavar="FACT", nargs="*", help="its number or its text")
    parser.add_argument("--whole", action="store_true", help="delete the entity itself")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    parser.add_argument(
        "--erase",
        action="store_true",
        help="remove the texts from the history and the files too; it cannot be undone",
    )
    parser.add_argument("--yes", action="store_true", help="agree to --erase")
    add_memory_arguments(parser)


def run_remember(settings: Settings, options: argparse.Namespace) -> int:
    """Store the facts and print a receipt. Raise BadInput."""
    texts = list(options.facts)
    if options.source is not None:
        source = (
            sys.stdin.read() if options.source == "-" else Path(options.source).read_text("utf-8")
        )
        texts += [line.strip() for line in source.splitlines() if line.strip()]
    if not (texts or options.type or options.tag):
        name = quote(options.name)
        raise BadInput(f"say what to remember: polymnia remember {name} 'likes tea'")
    drafts = tuple(FactDraft(text) for text in texts)
    requested = EntityFacts(
        name=options.name, type=options.type, facts=drafts, tags=tuple(options.tag)
    )
    with open_workspace(settings, creates=True) as workspace:
        receipt = remember(workspace.memory, [requested], by="polymnia remember")
        undo = undo_command(settings, workspace, [receipt.change])
        where = workspace_label(settings, workspace)
    (entity,) = receipt.entities
    shape = {"workspace": where, "change": receipt.change or None, "entity": entity}
    verb = {"created": "created", "added": "added to", "unchanged": "nothing new about"}
    lines = [f"{verb[entity.outcome]} {entity.name} [{entity.type}] in {where}"]
    for fact in entity.facts:
        reason = f" ({fact.reason})" if fact.reason else ""
        lines.append(f"{fact.ordinal:4}  {fact.text}{reason}")
        if fact.older is not None:
            lines.append(f"      may contradict {fact.older.ordinal}: {fact.older.text}")
        if fact.secret:
            lines.append(
                f"      looks like {fact.secret}: `polymnia forget --erase` removes it for good"
            )
    if entity.reason:
        lines.append(f"note: {entity.reason}")
    if entity.similar_names:
        lines.append(f"note: {' and '.join(entity.similar_names)} may be the same")
    return _print_receipt(options, undo, shape, lines)


def run_revise(settings: Settings, options: argparse.Namespace) -> int:
    """Change the entity and print a receipt. Raise BadInput, EntityNotFound."""
    revision = _revision(options)
    with open_workspace(settings) as workspace:
        try:
            receipt = revise(workspace.memory, options.name, revision, by="polymnia revise")
        except EntityNotFound:
            raise unknown_name(settings, [workspace], options.name) from None
        undo = undo_command(settings, workspace, [receipt.change])
        where = workspace_label(settings, workspace)
    before, after = receipt.before, receipt.after
    shape = {"workspace": where, "change": receipt.change or None, "name": after.name}
    if not undo:
        unchanged = f"nothing to change: {after.name} in {where} is like that already"
        return _print_receipt(options, undo, shape, [unchanged])
    lines = [f"revised {after.name} [{after.type}] in {where}"]
    if before.name != after.name:
        lines.append(f"      it was {before.name}; relations that follow: {receipt.relations}")
    for edit in (*receipt.replaced, *receipt.retracted, *receipt.superseded):
        lines.append(f"   -  {edit.old.text}")
        lines.append(f"{edit.new.ordinal:4}  {edit.new.text}")
    return _print_receipt(options, undo, shape, lines)


def run_forget(settings: Settings, options: argparse.Namespace) -> int:
    """Delete what is named and print a receipt. Raise BadInput if it does not exist."""
    if bool(options.facts) == options.whole:
        raise BadInput(
            f"say which facts of {options.name} to forget, or --whole for the entity itself; "
            f"`polymnia show {options.name}` numbers its facts"
        )
    unwanted = Unwanted(
        entities=(options.name,) if options.whole else (),
        facts=tuple((options.name, _fact_reference(fact)) for fact in options.facts),
    )
    erases = options.erase and not options.dry_run
    with open_workspace(settings, read_only=options.dry_run) as workspace:
        if erases:
            # Erase what is named and say what remains.
            erasure = erase(workspace.memory, unwanted, by="polymnia forget", dry_run=True)
            if erasure.unknown:
                raise unknown_name(settings, [workspace], options.name)
            what = " and ".join(erasure.erased)
            if not options.yes:
                raise BadInput(f"erasing {what} cannot be undone: add --yes to agree")
            erase(
                workspace.memory,
                unwanted,
                by="polymnia forget",
                other_memories=workspace.other_memories,
            )
            where = workspace_label(settings, workspace)
            if options.json:
                print_json({"workspace": where, "erased": list(erasure.erased)})
                return 0
            lines = [f"erased {what} in {where}, for good", *remark_on(erasure)]
            print_lines([*lines, erased_remains(workspace.memory)])
            return 0
        receipt = forget(workspace.memory, unwanted, by="polymnia forget", dry_run=options.dry_run)
        if receipt.unknown:
            raise unknown_name(settings, [workspace], options.name)
        undo = undo_command(settings, workspace, [receipt.change])
        where = workspace_label(settings, workspace)
    shape = {
        "workspace": where,
        "change": receipt.change or None,
        "dry_run": options.dry_run,
        "entities": len(receipt.entities),
        "facts": receipt.fact_count,
        "relations": len(receipt.relations),
    }
    verb = "would forget" if options.dry_run else "forgot"
    counts = count_noun(receipt.fact_count, "fact")
    if receipt.relations:
        counts += f" and {count_noun(len(receipt.relations), 'relation')}"
    names = ", ".join(entity.name for entity in receipt.entities)
    lines = [
        f"{verb} {names} in {where}, with {counts}" if names else f"{verb} {counts} in {where}"
    ]
    for owner in receipt.facts:
        lines += [f"{fact.ordinal:4}  {fact.text}" for fact in owner.facts]
    return _print_receipt(options, undo, shape, lines)


def _print_receipt(
    options: argparse.Namespace, undo: str, shape: dict[str, Any], lines: list[str]
) -> int:
    """Print what was done, for a program or a person, and how to take it back."""
    if options.json:
        print_json({**shape, "undo": undo or None})
    else:
        print_lines([*lines, f"to take it back: {undo}"] if undo else lines)
    return 0


def _revision(options: argparse.Namespace) -> Revision:
    """Return what to change. Raise BadInput if that is nothing."""
    if options.old is not None and options.new is None:
        raise BadInput("give the newer fact too: polymnia revise NAME OLD NEW")
    edits: tuple[Edit, ...] = ()
    if options.old is not None:
        edits = (Edit(_fact_reference(options.old), options.new),)
    fields: dict[str, Any] = {}
    if options.summary is not None:
        fields["summary"] = options.summary or None
    revision = Revision(
        name=options.rename,
        type=options.type,
        add_tags=tuple(options.tag),
        remove_tags=tuple(options.untag),
        replace=edits if options.wrong else (),
        supersede=() if options.wrong else edits,
        **fields,
    )
    if revision == Revision():
        raise BadInput("say what to change: OLD NEW, --rename, --type, --summary, --tag or --untag")
    return revision


def _fact_reference(text: str) -> int | str:
    """Return the number of a fact, or its text."""
    number = text.strip().removeprefix("#")
    return int(number) if number.isascii() and number.isdigit() else text
