"""The container: what its files name exists, it runs without rights, and its command starts a healthy server."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from polymnia.cli.main import build_parser
from polymnia.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent
PORT = 8081


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions and what follows each, long lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def last(name: str) -> str:
    return [rest for instruction, rest in instructions() if instruction == name][-1]


def command() -> list[str]:
    """What the container runs."""
    return [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]


def health_check() -> list[str]:
    found: list[str] = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    return found


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    found: dict[str, Any] = document["services"]["polymnia"]
    return found


def test_what_is_copied_exists_and_is_let_through() -> None:
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    sources = [source for each in copied for source in each]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    let_through = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert set(sources) == set(let_through)


def test_the_package_has_what_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = re.findall(r"\[([a-z]+)\]'", (ROOT / "Dockerfile").read_text("utf-8"))
    assert extras
    assert set(extras) <= set(project["optional-dependencies"])
    assert command()[0] in project["scripts"]


def test_the_image_has_a_python_that_is_supported() -> None:
    images = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    versions = [re.fullmatch(r"python:3\.(\d+)-slim", image) for image in images]
    assert all(found and int(found[1]) >= 11 for found in versions)


def test_it_runs_as_somebody_without_rights() -> None:
    assert last("USER") not in ("root", "0")
    assert f"useradd --uid 1000 --create-home {last('USER')}" in last("RUN")
    order = [name for name, _ in instructions()]
    assert order.index("USER") > max(place for place, name in enumerate(order) if name == "RUN")


def test_the_command_is_one_the_program_takes() -> None:
    options = vars(build_parser().parse_args(command()[1:]))
    flags = {name: value for name, value in options.items() if name in (*Settings.__struct_fields__, "data_dir")}
    settings = load_settings(flags, {"HOME": "/home/polymnia"})
    assert (settings.transport, settings.address) == ("http", f"0.0.0.0:{PORT}")
    assert settings.store == f"directory:{last('VOLUME')}"
    assert last("EXPOSE") == str(PORT)
    assert f"127.0.0.1:{PORT}/healthz" in health_check()[-1]


def test_compose_keeps_the_memory_in_a_volume_and_the_port_on_this_machine(service: dict[str, Any]) -> None:
    volumes = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["volumes"]
    assert [volume.split(":") for volume in service["volumes"]] == [[name, last("VOLUME")] for name in volumes]
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert (ROOT / service["build"] / "Dockerfile").is_file()


def test_compose_sets_settings_that_exist(service: dict[str, Any]) -> None:
    names = {f"POLYMNIA_{name.upper()}" for name in Settings.__struct_fields__}
    assert set(service["environment"]) <= names
    assert load_settings({}, service["environment"]).insecure is True


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    """The container's command on a free port, its data in a directory of the test; gives its address."""
    replaced = {"/data": str(tmp_path / "data"), str(PORT): "0"}
    arguments = [replaced.get(each, each) for each in command()[1:]]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "POLYMNIA_INSECURE": "true"}
    with subprocess.Popen(
        [sys.executable, "-m", "polymnia", *arguments], stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        found = re.search(r":(\d+)/mcp", said)
        assert found, said
        yield f"127.0.0.1:{found[1]}"
        server.terminate()
        server.stderr.read()
        assert server.wait(timeout=30) == 0


def test_its_command_starts_a_server_that_its_health_check_finds_healthy(running: str, tmp_path: Path) -> None:
    check = [each.replace(f"127.0.0.1:{PORT}", running) for each in health_check()]
    subprocess.run([sys.executable, *check[1:]], check=True, timeout=30)
    assert (tmp_path / "data" / "_meta.db").is_file()


def test_its_health_check_fails_where_no_server_is() -> None:
    check = [each.replace(f":{PORT}", ":1") for each in health_check()]
    assert subprocess.run([sys.executable, *check[1:]], check=False, timeout=30, capture_output=True).returncode == 1
