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
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *[found for key, part in parts for found in places(part, (*path, key))]]


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
