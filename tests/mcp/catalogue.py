"""A dialect's catalogue as its clients list it, and the copy it is compared with.

`python -m tests.mcp.catalogue DIALECT` writes the copy: read what has changed in it before
committing it.
"""

import json
import sys
from pathlib import Path

from polymnia.dialects import open_dialect
from polymnia.dialects.base import Dialect
from tests.mcp.conversation import JSON, Client, new_server

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def golden(name: str) -> Path:
    return Path(__file__).parent / "golden" / f"{name}.json"


def listed(dialect: Dialect) -> JSON:
    """Everything that can be listed, under the names the protocol has for it."""
    client = Client(new_server(dialect))
    client.session.client.session = (
        "golden"  # some list what belongs to the session, which else has a random name
    )
    catalogue: JSON = {}
    for method in LISTS:
        catalogue |= client.result(method)
    return catalogue


if __name__ == "__main__":
    text = json.dumps(listed(open_dialect(sys.argv[1])), indent=2, ensure_ascii=False)
    golden(sys.argv[1]).write_text(f"{text}\n", "utf-8")
