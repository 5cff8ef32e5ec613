"""Values of wrong types, and how to put them into every place of a sample."""

WRONG: list[object] = [
    None,
    True,
    7,
    -1.5,
    1e300,
    "",
    "text",
    [],
    [[]],
    {},
    {"a": {}},
    [None, {"text": 3}],
]


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the paths of all values inside a JSON value."""
    paths = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            paths += places(part, (*path, key))
    if isinstance(value, list):
        for number, part in enumerate(value):
            paths += places(part, (*path, number))
    return paths


def texts_in(value: object) -> list[str]:
    """Return all texts inside a JSON value."""
    if isinstance(value, str):
        return [value]
    texts = []
    if isinstance(value, dict):
        for part in value.values():
            texts += texts_in(part)
    if isinstance(value, list):
        for part in value:
            texts += texts_in(part)
    return texts


def replace_text(value: object, old: str, new: str) -> object:
    """Return a JSON value with another text wherever the old one is."""
    if isinstance(value, dict):
        return {key: replace_text(part, old, new) for key, part in value.items()}
    if isinstance(value, list):
        return [replace_text(part, old, new) for part in value]
    return new if value == old else value


def replaced(value: object, path: tuple[object, ...], wrong: object) -> object:
    """Return a JSON value with another value in one place."""
    if not path:
        return wrong
    if isinstance(value, dict):
        return {
            key: replaced(item, path[1:], wrong) if key == path[0] else item
            for key, item in value.items()
        }
    assert isinstance(value, list)
    return [
        replaced(item, path[1:], wrong) if key == path[0] else item
        for key, item in enumerate(value)
    ]
