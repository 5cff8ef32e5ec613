"""`polymnia doctor`: open a store, check it, say what is wrong and what to do."""

from polymnia.app import configure_logging, opened
from polymnia.errors import StoreError
from polymnia.settings import Settings


def doctor(settings: Settings) -> int:
    """0 when the store is sound, 1 when something is wrong with it."""
    configure_logging("error")
    print(f"store: {settings.store}")
    try:
        with opened(settings.store) as store:
            problems = store.check()
            with store.reading() as read:
                counts = read.counts()
    except StoreError as exc:
        print(f"cannot be read: {exc}")
        print("What to do: keep a copy of the file, then restore a backup or export what another copy still has.")
        return 1
    print(f"holds: {counts.entities} entities, {counts.observations} observations, {counts.relations} relations")
    for problem in problems:
        print(f"problem: {problem}")
    print(_advice(settings.store) if problems else "sound: nothing is wrong")
    return 1 if problems else 0


def _advice(store: str) -> str:
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
