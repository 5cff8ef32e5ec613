"""`polymnia embedder`: which models there are, and what to download for one."""

from pathlib import Path

import pytest

from polymnia.cli.main import main


def test_the_list_names_models_with_their_size_and_licence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["embedder", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[0] == "local"
    assert any("multilingual-e5-small" in line and "MIT" in line for line in lines)


def test_a_model_that_is_not_there_is_said_exactly_how_to_download(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["embedder", "check", f"onnx:{tmp_path}/multilingual-e5-small"]) == 1
    said = capsys.readouterr().out
    assert "has no model.onnx" in said
    assert "intfloat/multilingual-e5-small/resolve/main/onnx/model.onnx" in said
    assert "it has 487 MB" in said


def test_a_check_says_how_to_use_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedder", "check", "local"]) == 0
    assert "POLYMNIA_EMBEDDER=local" in capsys.readouterr().out


def test_no_embedder_has_no_model_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedder", "check", "none"]) == 1
    assert "searches use words alone" in capsys.readouterr().err
