"""`polymnia candidates`: facts that programs noticed and nobody has confirmed yet."""

import argparse
from typing import TYPE_CHECKING

from polymnia.cli.common import (
    add_memory_arguments,
    place_label,
    print_json,
    print_lines,
    undo_command,
)
from polymnia.engine.facts.candidates import (
    Candidate,
    CandidateReceipt,
    accept_candidates,
    dismiss_candidates,
    list_candidates,
)
from polymnia.errors import BadInput
from polymnia.places import Place, open_place, open_places
from polymnia.search.terms import count_noun
from polymnia.settings import Settings

if TYPE_CHECKING:
    from polymnia.cli.common import Subparsers

ACTOR = "polymnia candidates"


def add_candidates(commands: "Subparsers") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "candidates",
        help="list, accept and dismiss facts that were noticed in conversations",
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog="polymnia candidates"
    )
    listing = actions.add_parser("list", help="list the candidates, the newest first")
    accept = actions.add_parser("accept", help="make facts of candidates")
    accept.add_argument("--into", metavar="NAME", default="", help="the entity that gets the facts")
    dismiss = actions.add_parser("dismiss", help="delete candidates")
    for action in (accept, dismiss):
        action.add_argument("numbers", metavar="NUMBER", nargs="+", help="from the list")
    draft = actions.add_parser(
        "draft", help="let the chat model of the settings find candidates in the last conversation"
    )
    for action in (listing, accept, dismiss, draft):
        add_memory_arguments(action)
    return parser


def run_candidates(settings: Settings, options: argparse.Namespace) -> int:
    """Run one of the actions. Raise BadInput."""
    if options.action == "list":
        return _list(settings, as_json=options.json)
    with open_place(settings) as place:
        receipt = _change(settings, place, options)
        has_history = place.memory.store.capabilities.history
        changes = [receipt.change] if receipt.change and has_history else []
        undo = undo_command(settings, place, changes)
    if options.json:
        print_json({"candidates": receipt.candidates, "undo": undo or None})
        return 0
    verb = {"accept": "accepted", "dismiss": "dismissed", "draft": "found"}[options.action]
    print(f"{verb} {count_noun(len(receipt.candidates), 'candidate')}")
    print_lines([_line(candidate) for candidate in receipt.candidates])
    if undo:
        print(f"to take it back: {undo}")
    return 0


def _change(settings: Settings, place: Place, options: argparse.Namespace) -> CandidateReceipt:
    if options.action == "draft":
        from polymnia.hooks.drafting import draft_candidates

        return draft_candidates(settings, place.memory)
    numbers = _parse_numbers(options.numbers)
    if options.action == "dismiss":
        return dismiss_candidates(place.memory, numbers, by=ACTOR)
    return accept_candidates(place.memory, numbers, by=ACTOR, into=options.into)


def _list(settings: Settings, *, as_json: bool) -> int:
    """Print the candidates that wait."""
    candidates: dict[str, list[Candidate]] = {}
    with open_places(settings) as places:
        for place in places:
            candidates[place_label(settings, place)] = list_candidates(place.memory)
    if as_json:
        print_json(candidates)
    for label, listed in candidates.items():
        if listed and not as_json:
            print_lines([f"{label}:", *(f"  {_line(candidate)}" for candidate in listed)])
    if not as_json and not any(candidates.values()):
        print("no candidates wait")
    return 0


def _line(candidate: Candidate) -> str:
    return f"#{candidate.ordinal} {candidate.kind}: {candidate.text}  -> {candidate.into}"


def _parse_numbers(words: list[str]) -> list[int]:
    numbers = []
    for word in words:
        digits = word.removeprefix("#")
        if not digits.isdecimal():
            raise BadInput(f"{word!r} is not the number of a candidate; `candidates list` has them")
        numbers.append(int(digits))
    return numbers
