"""Other people's MCP clients and servers, held against the real process."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.claims", f"{__name__}.transcript")
