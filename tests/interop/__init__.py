"""Check Polymnia against other people's MCP clients and servers."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.claims", f"{__name__}.transcript")
