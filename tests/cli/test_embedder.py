"""`polymnia embedder`: load a model and say how to use it."""

from pathlib import Path

import pytest

from polymnia.cli.main import main


def test_a_model_that_is_not_there_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["embedder", "check", f"onnx:{tmp_path}"]) == 1
    assert "has no model.onnx" in capsys.readouterr().err


def test_a_check_says_how_to_use_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedder", "check", "local"]) == 0
    assert "POLYMNIA_EMBEDDER=local" in capsys.readouterr().out


def test_no_embedder_has_no_model_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedder", "check", "none"]) == 1
    assert "searches use words alone" in capsys.readouterr().err
