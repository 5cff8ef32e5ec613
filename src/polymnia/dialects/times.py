"""Times as catalogues spell them."""

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)


def iso_time(at: int) -> str | None:
    """ISO 8601 in UTC for a time of the model; None for one that the store does not know."""
    if not at:
        return None
    return (_START + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")
