"""Check the wheels.

Complete, described for a package index, with types and with the right weights.
"""

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WEIGHTS = ROOT / "packages" / "polymnia-minilm"


def build(source: Path, target: Path) -> zipfile.ZipFile:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(target),
        str(source),
    ]
    subprocess.run(command, check=True)
    (wheel,) = target.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(WEIGHTS, tmp_path_factory.mktemp("weights"))


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    return message_from_string(wheel.read(name).decode())


def test_the_wheel_has_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if name.startswith("polymnia/")}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "polymnia").rglob("*.*")
    }
    assert packed == {name for name in source if "__pycache__" not in name}


def test_the_wheel_has_the_manual_page(wheel: zipfile.ZipFile) -> None:
    assert [name for name in wheel.namelist() if name.endswith("/data/share/man/man1/polymnia.1")]


def test_the_wheel_says_where_it_comes_from(wheel: zipfile.ZipFile) -> None:
    found = metadata(wheel)
    labels = {item.partition(",")[0] for item in found.get_all("Project-URL", [])}
    assert labels == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert (found["Author"], found["License-Expression"]) == ("The Polymnia authors", "Apache-2.0")
    assert found["Description-Content-Type"] == "text/markdown"


def test_every_link_of_the_description_works_outside_the_repository(wheel: zipfile.ZipFile) -> None:
    text = str(metadata(wheel).get_payload())
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 10
    # A link within the page works wherever the page is shown.
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_the_base_install_stays_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(project["dependencies"]) == 9


def test_the_weights_are_the_expected_ones_and_their_licences_come_along(
    weights: zipfile.ZipFile,
) -> None:
    readme = (WEIGHTS / "README.md").read_text("utf-8")
    assert hashlib.sha256(weights.read("polymnia_minilm/model.onnx")).hexdigest() in readme
    licences = {name.rpartition("/")[2] for name in weights.namelist() if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE-model.txt", "NOTICE-vocabulary.txt"}


OPEN = "from polymnia.embedders.onnx import open_minilm; print(open_minilm().identity)"


def test_our_package_of_weights_is_used_if_it_is_installed(
    weights: zipfile.ZipFile, tmp_path: Path
) -> None:
    weights.extractall(tmp_path)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command, environment = [sys.executable, "-c", OPEN], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "all-MiniLM-L6-v2-int8/384///parts/short-named\n"
    with (tmp_path / "polymnia_minilm" / "model.onnx").open("ab") as file:
        file.write(b"x")
    failed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (
        f"{tmp_path / 'polymnia_minilm' / 'model.onnx'} is not the expected model" in failed.stderr
    )


def test_mypy_knows_the_types_of_the_package(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import polymnia\nreveal_type(polymnia.open('memory:').remember('Ada').texts)\n", "utf-8"
    )
    mypy = pytest.importorskip("mypy.api", reason="mypy is not installed")
    said, _, _ = mypy.run(
        ["--config-file", "", "--cache-dir", str(tmp_path / "cache"), str(program)]
    )
    assert 'Revealed type is "tuple[str, ...]"' in said.replace("builtins.", "")
