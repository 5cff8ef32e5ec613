"""Check the container.

Its files exist, it runs without privileges, and its server starts only with a token.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from polymnia.dialects.registry import DIALECTS
from polymnia.settings import Settings, load_settings
from tests.processes import TIMEOUT_S, Log, end_with_parent, polymnia_command

ROOT = Path(__file__).parent.parent
PORT = 8765


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments; join continued lines."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def last(name: str) -> str:
    return [rest for instruction, rest in instructions() if instruction == name][-1]


def command() -> list[str]:
    """Return the command that the container runs."""
    return [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]


def health_check() -> list[str]:
    found: list[str] = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    return found


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    found: dict[str, Any] = document["services"]["polymnia"]
    return found


def test_every_copied_file_exists_and_is_not_ignored() -> None:
    copied = [
        rest.split()[:-1]
        for name, rest in instructions()
        if name == "COPY" and "--from" not in rest
    ]
    sources = [source for item in copied for source in item]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    not_ignored = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert set(sources) == set(not_ignored)


def test_the_package_has_the_extras_and_the_script_that_the_image_uses() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"\[([a-z,]+)\]'", (ROOT / "Dockerfile").read_text("utf-8"))
    assert len(set(named)) == 1
    assert (
        {"semantic", "oauth"} <= set(named[0].split(",")) <= set(project["optional-dependencies"])
    )
    assert command()[0] in project["scripts"]


def test_the_python_of_the_image_is_supported() -> None:
    images = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    versions = [re.fullmatch(r"python:3\.(\d+)-slim", image) for image in images]
    assert all(found and int(found[1]) >= 11 for found in versions)


def test_the_server_runs_as_an_unprivileged_user() -> None:
    assert last("USER") not in ("root", "0")
    assert f"useradd --uid 1000 --create-home {last('USER')}" in last("RUN")
    order = [name for name, _ in instructions()]
    assert order.index("USER") > max(place for place, name in enumerate(order) if name == "RUN")


def test_the_command_uses_the_port_and_the_volume_of_the_image() -> None:
    flags = dict(zip(command()[2::2], command()[3::2], strict=True))
    assert (flags["--transport"], flags["--bind"], flags["--port"]) == (
        "http",
        "0.0.0.0",
        last("EXPOSE"),
    )
    assert flags["--data-dir"] == last("VOLUME")
    assert f"127.0.0.1:{last('EXPOSE')}/healthz" in health_check()[-1]


def test_compose_keeps_the_memory_in_a_volume_and_publishes_the_port_locally(
    service: dict[str, Any],
) -> None:
    volumes = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["volumes"]
    assert service["volumes"] == [f"memory:{last('VOLUME')}"]
    assert "memory" in volumes
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert (ROOT / service["build"] / "Dockerfile").is_file()


def test_compose_sets_settings_that_exist(service: dict[str, Any]) -> None:
    assert set(service["environment"]) <= {
        f"POLYMNIA_{name.upper()}" for name in Settings.__struct_fields__
    }


def test_the_servers_of_a_team_share_a_database_and_its_tokens() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    servers = [services["team-one"], services["team-two"]]
    settings = [
        load_settings(
            {},
            {
                name: value
                for name, value in server["environment"].items()
                if name.startswith("POLYMNIA_")
            },
        )
        for server in servers
    ]
    assert {(setting.store, setting.tokens, setting.insecure) for setting in settings} == {
        ("postgresql://polymnia@database/memory", "", False)  # the tokens are in the database
    }
    assert all("/readyz" in server["healthcheck"]["test"][-1] for server in servers)
    assert len({server["ports"][0] for server in servers}) == 2
    assert all(server["profiles"] == ["team"] for server in (*servers, services["database"]))
    assert all("--insecure" not in server["command"] for server in servers)


def test_compose_does_not_switch_tokens_off(service: dict[str, Any]) -> None:
    assert load_settings({}, service["environment"]).insecure is False
    assert "--insecure" not in [*command(), *service.get("command", ())]


def container_command(directory: Path) -> list[str]:
    """Return the container's command on a free port, with its data in the directory."""
    replaced = {"/data": str(directory / "data"), str(PORT): "0"}
    return polymnia_command(*(replaced.get(item, item) for item in command()[1:]))


def container_environment(directory: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(directory)}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Create a token, run the container's command and yield the server's address."""
    environment = container_environment(tmp_path)
    token = polymnia_command("token", "create", "me", "--data-dir", str(tmp_path / "data"))
    subprocess.run(
        [*token, "--can", "admin"], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    with subprocess.Popen(
        container_command(tmp_path),
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=end_with_parent,
    ) as server:
        log = Log(server.stderr)
        yield f"127.0.0.1:{log.port}"
        server.terminate()
        assert server.wait(TIMEOUT_S) == 0
        log.join()


def test_the_health_check_finds_the_server_healthy(address: str, tmp_path: Path) -> None:
    check = [item.replace(f"127.0.0.1:{PORT}", address) for item in health_check()]
    subprocess.run([sys.executable, *check[1:]], check=True, timeout=TIMEOUT_S)
    assert (tmp_path / "data" / "_meta.db").is_file()


def test_every_dialect_is_served(address: str, tmp_path: Path) -> None:
    for name in DIALECTS:
        request = Request(
            f"http://{address}/{name}/mcp", b"{}", {"Content-Type": "application/json"}
        )
        with pytest.raises(HTTPError) as refused:
            urlopen(request, timeout=TIMEOUT_S)
        assert (name, refused.value.code) == (name, 401)  # the path exists and wants a token
        refused.value.close()
    with pytest.raises(HTTPError) as missing:
        urlopen(Request(f"http://{address}/latin/mcp", b"{}"), timeout=TIMEOUT_S)
    assert missing.value.code == 404
    missing.value.close()


def test_the_server_does_not_start_without_a_token(tmp_path: Path) -> None:
    ended = subprocess.run(
        container_command(tmp_path),
        env=container_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode != 0
    assert "polymnia token create" in ended.stderr


def test_the_health_check_fails_without_a_server() -> None:
    check = [item.replace(f":{PORT}", ":1") for item in health_check()]
    ended = subprocess.run(
        [sys.executable, *check[1:]], check=False, timeout=TIMEOUT_S, capture_output=True
    )
    assert ended.returncode == 1
