"""`polymnia index`, `perspective` and `embedder`: what embeds a memory, for search by meaning."""

import argparse
from time import perf_counter

from msgspec import to_builtins
from msgspec.structs import replace

from polymnia.cli.common import (
    Progress,
    Subparsers,
    add_embedder_argument,
    add_json_argument,
    add_memory_arguments,
    print_json,
    print_result,
    print_table,
    printable,
    workspace_label,
)
from polymnia.embedders.base import open_embedder
from polymnia.engine.semantic import perspectives
from polymnia.engine.semantic.perspectives import PerspectiveCoverage
from polymnia.errors import BadInput
from polymnia.search.terms import count_noun
from polymnia.settings import Settings
from polymnia.stores import hide_passwords
from polymnia.workspace_choice import open_workspace, open_workspaces_to_read


def add_index(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "index", help="embed what has no vector yet, for search by meaning"
    )
    add_embedder_argument(parser)
    add_memory_arguments(parser)


def add_perspective(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "perspective", help="list, set and remove the perspectives in which a memory is embedded"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia perspective"
    )
    listing = actions.add_parser(
        "list", help="list the perspectives, and how much of the memory is embedded in each"
    )
    setting = actions.add_parser("set", help="add a perspective, or change its templates")
    setting.add_argument("name", metavar="NAME")
    setting.add_argument(
        "--document",
        metavar="TEMPLATE",
        help="what is embedded of a fact: {text}, and perhaps {name}, {type} and {date} "
        "(default: {text})",
    )
    setting.add_argument(
        "--query",
        metavar="TEMPLATE",
        help="what is embedded of a question: {query} (default: {query})",
    )
    removal = actions.add_parser("remove", help="remove a perspective and its vectors")
    removal.add_argument("name", metavar="NAME")
    for action in (listing, setting, removal):
        add_embedder_argument(action)
        add_memory_arguments(action)


def run_index(settings: Settings, options: argparse.Namespace) -> int:
    """Embed everything that has no vector of the embedder's model.

    A running server does the same in the background. Raise BadInput without an
    embedder.
    """
    with open_workspaces_to_read(settings) as workspaces:
        names, is_sole = [workspace.name for workspace in workspaces], workspaces[0].is_sole
    counts: dict[str, int] = {}
    for name in names:
        own = settings if is_sole else replace(settings, workspace=name)
        progress = Progress("passages")
        with open_workspace(own, by_meaning=True) as workspace:
            where, memory = workspace_label(own, workspace), workspace.memory
            if memory.meaning is None:
                raise BadInput(
                    f"nothing to index {where} with: "
                    "the embedder is `none`, or this kind of store has no vectors"
                )
            with memory.reading() as read:
                holds = bool(read.counts().entities or read.counts().notes)
            counts[where] = memory.meaning.index(memory.store, progress)
        progress.end()
        if not options.json:
            done = f"{count_noun(counts[where], 'passage')} embedded"
            if not counts[where]:
                done = "everything is embedded already" if holds else "nothing is stored there yet"
            print(f"{where}: {done}")
    if options.json:
        store = hide_passwords(settings.store)
        print_json({"store": store, "embedded": sum(counts.values()), "workspaces": counts})
    return 0


def run_perspective(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the action. Raise BadInput."""
    is_list = options.action == "list"
    with open_workspace(settings, read_only=is_list, by_meaning=True) as workspace:
        where = workspace_label(settings, workspace)
        memory, name = workspace.memory, getattr(options, "name", "")
        if is_list:
            _print_coverage(perspectives.find_all(memory), where, as_json=options.json)
            return 0
        if options.action == "remove":
            perspectives.remove(memory, name)
            done = f"removed {name}"
        else:
            perspectives.store(memory, name, document=options.document, query=options.query)
            done = f"set {name}"
            for coverage in perspectives.find_all(memory):
                missing = coverage.total - coverage.embedded
                if coverage.perspective.name == name and missing:
                    done += (
                        f": {missing} of {coverage.total} still need vectors; a running server "
                        "embeds the rest in the background; `polymnia index` does it now"
                    )
        sentence = f"{where}: {done}"
        result = {"workspace": workspace.name, "action": options.action, "name": options.name}
    print_result(printable(sentence), result, as_json=options.json)
    return 0


def _print_coverage(coverages: list[PerspectiveCoverage], where: str, *, as_json: bool) -> None:
    if as_json:
        shapes = []
        for coverage in coverages:
            counts = {"embedded": coverage.embedded, "total": coverage.total}
            shapes.append({**to_builtins(coverage.perspective), **counts})
        print_json(shapes)
        return
    rows = []
    for coverage in coverages:
        perspective = coverage.perspective
        embedded = f"{coverage.embedded}/{coverage.total}"
        rows.append((perspective.name, embedded, perspective.document, perspective.query))
    print_table(rows)
    print(f"{count_noun(len(coverages), 'perspective')} of {where}")


def add_embedder(commands: Subparsers) -> None:
    parser = commands.add_parser("embedder", help="check that an embedding model works here")
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia embedder"
    )
    check = actions.add_parser("check", help="load a model and time it")
    check.add_argument(
        "model",
        metavar="EMBEDDER",
        help="as in --embedder: multilingual, onnx:DIRECTORY, ollama:MODEL, ...",
    )
    add_json_argument(check)


def run_embedder(settings: Settings, options: argparse.Namespace) -> int:
    """Load a model and time it. Raise BadInput, EmbedderError."""
    embedder = open_embedder(options.model, key=settings.embedder_key)
    if embedder is None:
        raise BadInput("the embedder `none` has no model: searches use words alone")
    texts = [f"The meeting number {number} was moved to Friday." for number in range(8)]
    began = perf_counter()
    embedder.embed(texts)
    milliseconds = 1000 * (perf_counter() - began) / len(texts)
    lines = [
        f"{options.model} works: {embedder.identity}, {embedder.dimension} numbers, "
        f"{milliseconds:.0f} ms a text",
        f'use it: embedder = "{options.model}" in config.toml, or '
        f"POLYMNIA_EMBEDDER={options.model}",
        "a running server then embeds the memory again in the background; "
        "until it is done, searches use words and say so",
    ]
    result = {
        "embedder": options.model,
        "model": embedder.identity,
        "dimension": embedder.dimension,
    }
    print_result("\n".join(lines), result, as_json=options.json)
    return 0
