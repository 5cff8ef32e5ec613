"""`polymnia embedder`: which models there are for search by meaning, and whether one works here."""

import argparse
from time import perf_counter

from polymnia.cli.common import Subparsers, add_json_argument, print_json, print_result, print_table
from polymnia.embedders.base import missing_package, open_embedder
from polymnia.embedders.catalogue import MODELS, find_model
from polymnia.errors import BadInput, EmbedderError
from polymnia.settings import Settings

# A sentence, its translations, and a sentence about something else.
_SENTENCE, _OTHER = "The meeting was moved to Friday.", "The soup needs more salt."
_TRANSLATIONS = {
    "German": "Die Besprechung wurde auf Freitag verschoben.",
    "Spanish": "La reunión se ha pasado al viernes.",
    "French": "La réunion a été déplacée à vendredi.",
    "Chinese": "会议改到星期五了。",
    "Japanese": "会議は金曜日に変更された。",
    "Arabic": "تم نقل الاجتماع إلى يوم الجمعة.",
}


def add_embedder(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "embedder", help="list embedding models, and check that one works here"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia embedder"
    )
    listing = actions.add_parser("list", help="list models that are known to work, and their sizes")
    check = actions.add_parser(
        "check", help="load a model and try it, or say exactly what to download"
    )
    check.add_argument(
        "model",
        metavar="EMBEDDER",
        help="as in --embedder: multilingual, onnx:DIRECTORY, ollama:MODEL, ...",
    )
    for action in (listing, check):
        add_json_argument(action)


def run_embedder(settings: Settings, options: argparse.Namespace) -> int:
    """List the models, or check one. Raise BadInput, EmbedderError."""
    if options.action == "list":
        _print_models(as_json=options.json)
        return 0
    try:
        embedder = open_embedder(options.model, key=settings.embedder_key)
    except EmbedderError as exc:
        return _say_what_to_get(options.model, exc, as_json=options.json)
    if embedder is None:
        raise BadInput("the embedder `none` has no model: searches use words alone")
    began = perf_counter()
    # The languages in which the model recognizes a sentence.
    (asked,) = embedder.embed([_SENTENCE], asking=True)
    other, *translated = embedder.embed([_OTHER, *_TRANSLATIONS.values()])
    margins = [float(asked @ vector - asked @ other) for vector in translated]
    understood = [name for name, margin in zip(_TRANSLATIONS, margins, strict=True) if margin > 0.2]
    milliseconds = 1000 * (perf_counter() - began) / (len(_TRANSLATIONS) + 2)
    lines = [
        f"{options.model} works: {embedder.identity}, {embedder.dimension} numbers, "
        f"{milliseconds:.0f} ms a text",
        f"finds the same sentence in: {', '.join(['English', *understood])}",
        f'use it: embedder = "{options.model}" in config.toml, or '
        f"POLYMNIA_EMBEDDER={options.model}",
        "a running server then embeds the memory again in the background; "
        "until it is done, searches use words and say so",
    ]
    result = {
        "embedder": options.model,
        "model": embedder.identity,
        "dimension": embedder.dimension,
        "languages": ["English", *understood],
    }
    print_result("\n".join(lines), result, as_json=options.json)
    return 0


def _print_models(*, as_json: bool) -> None:
    if as_json:
        print_json({"embedders": list(MODELS)})
        return
    rows = [("EMBEDDER", "LANGUAGES", "MB", "LICENCE", "GET IT")]
    for model in MODELS:
        is_installed = ":" not in model.embedder and not missing_package(model.embedder)
        how = "installed" if is_installed else f"polymnia embedder check {model.embedder}"
        megabytes = str(model.megabytes)
        rows.append((model.embedder, model.languages, megabytes, model.licence, how))
    print_table(rows)


def _say_what_to_get(url: str, problem: EmbedderError, *, as_json: bool) -> int:
    """Print how to get a known model that is not there, and return 1. Raise for another one."""
    model = find_model(url)
    if model is None:
        raise problem
    lines = [
        f"{problem}",
        f"it has {model.megabytes} MB, for {model.languages}, licensed under {model.licence}:",
        *[f"  {step}" for step in model.steps],
    ]
    result = {"embedder": url, "problem": str(problem), "steps": list(model.steps)}
    print_result("\n".join(lines), result, as_json=as_json)
    return 1
