"""`polymnia doctor`: open a store, check it, say what is wrong and what to do; save what a damaged log still has."""

from pathlib import Path

from polymnia.app import configure_logging, opened
from polymnia.cli.missing import refuse_missing
from polymnia.errors import BadInput, StoreError
from polymnia.model import VAULT
from polymnia.settings import Settings
from polymnia.stores import open_catalogue, store_kind


def doctor(settings: Settings) -> int:
    """0 when the store is sound, 1 when something is wrong with it."""
    configure_logging("error")
    refuse_missing(settings.store)
    print(f"store: {settings.store}")
    kind, path = store_kind(settings.store)
    if kind == "directory" and not settings.workspace:
        return _examine_all(settings, path)
    return _examine(settings, settings.workspace)


def _examine_all(settings: Settings, directory: str) -> int:
    """Every workspace that is in use, and whether files and registry agree."""
    catalogue = open_catalogue(settings.store)
    assert catalogue is not None  # it is a directory
    problems = catalogue.check()
    names = [each.name for each in catalogue.listed("active")]
    catalogue.close()
    for problem in problems:
        print(f"problem: {problem}")
    results = []
    for name in names:
        print(f"workspace: {name}")
        results.append(_examine(settings, name))
    return 1 if problems or any(results) else 0


def _examine(settings: Settings, workspace: str) -> int:
    try:
        with opened(settings.store, workspace) as store:
            problems = store.check()
            with store.reading() as read:
                counts = read.counts()
                notes = read.notes.count(VAULT, ()) if store.capabilities.notes else 0
    except StoreError as exc:
        print(f"cannot be read: {exc}")
        print(_rescue(settings.store))
        return 1
    kept = f", {notes} notes in the vault" if notes else ""
    print(f"holds: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations{kept}")
    for problem in problems:
        print(f"problem: {problem}")
    print(_advice(settings.store) if problems else "sound: nothing is wrong")
    return 1 if problems else 0


def salvage(settings: Settings, target: str | None) -> int:
    """Write what can be read of a damaged binary log to a new one. Raises BadInput for another kind of store."""
    from polymnia.stores.files.binlog_forms import salvage as salvage_log

    kind, path = store_kind(settings.store)
    if kind != "binlog":
        raise BadInput(f"--salvage is for binary logs (.mcpmem, .bin); {settings.store} is not one")
    new = target or f"{path}.salvaged.mcpmem"
    counts, gaps = salvage_log(Path(path), Path(new))
    for start, end in gaps:
        print(f"not readable: {end - start} bytes from byte {start} on")
    print(f"{new}: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations")
    print(f"What to do: look at it with `polymnia export --store {new}`; {path} is as it was.")
    return 0


def _rescue(store: str) -> str:
    if store_kind(store)[0] == "binlog":
        return (
            f"What to do: stop every server on it, then run `polymnia doctor --salvage --store {store}`; it writes "
            "what can be read to a new file and leaves this one alone."
        )
    return "What to do: keep a copy of the file, then restore a backup or export what another copy still has."


def _advice(store: str) -> str:
    if store_kind(store)[0] == "binlog":
        return (
            "What to do: nothing. A write was not finished, and no client was told that it had succeeded; the next "
            f"write moves what is there of it to {store_kind(store)[1]}.torn."
        )
    if store.endswith((".jsonl", ".json")):
        return (
            "What to do: mend those lines in an editor, or leave them: everything else is loaded, and at the next "
            f"write they are kept in {store}.rejected."
        )
    return (
        f"What to do: stop every server on it and keep a copy of the file; then save what can be read with "
        f"`polymnia export --store {store} -o saved.jsonl` and take it into a new store with "
        "`polymnia import saved.jsonl --store new.db`."
    )
