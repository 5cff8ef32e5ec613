"""A project, and settings whose files are in the test's directory."""

from pathlib import Path

import pytest

from polymnia.settings import Settings, load_settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a git work tree, with a home of its own beside it."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture
def settings(project: Path) -> Settings:
    return load_settings({"store": f"{project.parent}/workspaces/"})
