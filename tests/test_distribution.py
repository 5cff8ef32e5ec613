"""Check the files by which registries and installers know us.

They agree with the package and with each other.
"""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from polymnia import __version__
from polymnia.cli.main import build_parser
from polymnia.settings import Settings, load_settings

TEMPLATE = "## Several servers with systemd"
ROOT = Path(__file__).parent.parent
# What the registry's schema and its rules for publishing ask of our two kinds of packages. Compared
# with modelcontextprotocol/registry e361b5f, internal/validators/schemas/2025-12-11.json: stricter
# in every field.
_TEXT = {"type": "string", "minLength": 1}
_ARGUMENT = {
    "type": "object",
    "required": ["type", "value"],
    "properties": {
        "type": {"enum": ["positional", "named"]},
        "name": _TEXT,
        "value": _TEXT,
        "description": _TEXT,
    },
    "additionalProperties": False,
    "if": {"properties": {"type": {"const": "named"}}},
    "then": {"required": ["name"]},
}
_PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "transport"],
    "properties": {
        "registryType": {"enum": ["pypi", "oci"]},
        "registryBaseUrl": {"const": "https://pypi.org"},
        "identifier": _TEXT,
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "runtimeHint": {"enum": ["uvx", "docker"]},
        "transport": {"const": {"type": "stdio"}},
        "packageArguments": {"type": "array", "items": _ARGUMENT},
        "runtimeArguments": {"type": "array", "items": _ARGUMENT},
        "environmentVariables": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": _TEXT,
                    "description": _TEXT,
                    "format": {"enum": ["string", "number", "boolean", "filepath"]},
                    "isRequired": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
    # An image has its version in the identifier, and only there.
    "if": {"properties": {"registryType": {"const": "oci"}}},
    "then": {"not": {"required": ["version"]}},
    "else": {"required": ["version"]},
}
SERVER = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "properties": {
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
        },
        "name": {
            "type": "string",
            "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
            "minLength": 3,
            "maxLength": 200,
        },
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "websiteUrl": {"type": "string", "pattern": "^https://"},
        "repository": {
            "type": "object",
            "required": ["url", "source"],
            "properties": {"url": _TEXT, "source": {"const": "github"}},
            "additionalProperties": False,
        },
        "packages": {"type": "array", "minItems": 1, "items": _PACKAGE},
    },
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "server.json").read_text("utf-8"))
    return found


def project(path: str = "pyproject.toml") -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / path).read_text("utf-8"))["project"]
    return found


def test_the_registry_accepts_server_json(server: dict[str, Any]) -> None:
    Draft202012Validator(SERVER).validate(server)


def test_the_readme_proves_that_the_registered_server_is_ours(server: dict[str, Any]) -> None:
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    label = f'io.modelcontextprotocol.server.name="{server["name"]}"'
    assert label in (ROOT / "Dockerfile").read_text("utf-8")


def test_every_file_has_the_version_of_the_package(server: dict[str, Any]) -> None:
    manifest = json.loads((ROOT / "packages" / "mcpb" / "manifest.json").read_text("utf-8"))
    bundle = project("packages/mcpb/pyproject.toml")
    pypi, image = server["packages"]
    versions = [
        server["version"],
        pypi["version"],
        image["identifier"].rpartition(":")[2],
        manifest["version"],
    ]
    plugins = [
        json.loads(path.read_text("utf-8"))
        for path in (ROOT / "packages" / "plugin").glob(".*/plugin.json")
    ]
    assert len(plugins) == 2
    assert {*versions, bundle["version"], *[plugin["version"] for plugin in plugins]} == {
        __version__
    }
    assert bundle["dependencies"] == [f"polymnia[semantic]=={__version__}"]


def test_every_file_has_the_description_and_the_addresses_of_the_package(
    server: dict[str, Any],
) -> None:
    manifest = json.loads((ROOT / "packages" / "mcpb" / "manifest.json").read_text("utf-8"))
    assert {server["description"], manifest["description"]} == {project()["description"]}
    urls = project()["urls"]
    (repository,) = re.findall(
        r"^REPOSITORY = \"(.+)\"", (ROOT / "hatch_build.py").read_text("utf-8"), re.MULTILINE
    )
    assert {repository, server["repository"]["url"], manifest["repository"]["url"]} == {
        urls["Source"]
    }
    assert {server["websiteUrl"], manifest["documentation"]} == {urls["Documentation"]}


def test_the_variables_that_clients_may_set_exist(server: dict[str, Any]) -> None:
    manifest = json.loads((ROOT / "packages" / "mcpb" / "manifest.json").read_text("utf-8"))
    named = {variable["name"] for variable in server["packages"][0]["environmentVariables"]}
    named |= set(manifest["server"]["mcp_config"]["env"])
    assert named <= {f"POLYMNIA_{name.upper()}" for name in Settings.__struct_fields__}


def test_publishing_needs_no_secret_but_the_workflows_own_token() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}
    for name in ("pypi", "registry"):
        assert jobs[name]["permissions"]["id-token"] == "write"


def test_every_action_is_pinned_by_its_commit() -> None:
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    actions = re.findall(r"uses: (.+)", "\n".join(path.read_text("utf-8") for path in workflows))
    assert actions
    assert [action for action in actions if not re.match(r"[\w/-]+@[0-9a-f]{40} # v", action)] == []


def test_the_workflow_runs_the_gate() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    commands = [step.get("run") for step in workflow["jobs"]["gate"]["steps"]]
    assert commands[-2:] == ["sudo .ci/install-programs", ".ci/run"]


def test_the_lock_file_pins_every_development_package_with_hashes() -> None:
    """`just lock` writes the file again."""
    lines = (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", "\n".join(lines), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {re.split(r"[\[<>=;]", line)[0] for line in wanted} - {"polymnia"}
    assert names - pinned.keys() == set()
    assert {name for name, version in exact_versions(wanted) if pinned[name] != version} == set()
    assert all("--hash=sha256:" in line for line in lines if line.startswith("    "))


def exact_versions(requirements: list[str]) -> list[tuple[str, str]]:
    """Return the names and versions of the requirements that allow one version."""
    return re.findall(r"^([\w-]+)==(\S+)$", "\n".join(requirements), re.MULTILINE)


def test_dependabot_watches_every_directory_with_dependencies() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))["updates"]
    watched = {
        place
        for update in updates
        for place in update.get("directories", [update.get("directory")])
    }
    manifests = [
        *ROOT.glob("tests/interop/*/package.json"),
        ROOT / "packages" / "polymnia-frameworks" / "pyproject.toml",
        ROOT / "packages" / "polymnia-minilm" / "pyproject.toml",
    ]
    assert {f"/{path.parent.relative_to(ROOT).as_posix()}" for path in manifests} <= watched


def operations_block(language: str, *, after: str = "") -> str:
    """Return the first block of a language on the page about operations, or after a heading."""
    text = (ROOT / "docs" / "operations.md").read_text("utf-8").partition(after or "\n")[2]
    return text.partition(f"```{language}\n")[2].partition("\n```")[0] + "\n"


def test_the_unit_starts_a_command_that_exists_with_settings_that_exist() -> None:
    unit = operations_block("ini")
    (command,) = re.findall(r"^ExecStart=/opt/polymnia/bin/polymnia (.+)$", unit, re.MULTILINE)
    options = build_parser().parse_args(command.split())
    assert (options.command, options.transport, options.dialects) == ("serve", "http", ["all"])
    variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
    assert load_settings({}, variables).public_url == "https://memory.example.com"


def test_the_template_starts_a_command_that_exists_with_settings_that_exist() -> None:
    unit = operations_block("ini", after=TEMPLATE)
    (command,) = re.findall(r"^ExecStart=/opt/polymnia/bin/polymnia (.+)$", unit, re.MULTILINE)
    options = build_parser().parse_args(command.replace("%i", "8766").split())
    assert (options.command, options.port) == ("serve", 8766)
    lines = operations_block("sh", after=TEMPLATE).splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    settings = load_settings({"port": 8766}, variables)
    assert settings.address == "10.0.0.11:8766"
    assert settings.trusted_proxies == ("10.0.0.10",)
    assert settings.store.startswith("postgresql://")


@pytest.mark.parametrize(
    ("after", "name"),
    [("", "polymnia.service"), (TEMPLATE, "polymnia@8765.service")],
)
def test_systemd_accepts_the_unit(tmp_path: Path, after: str, name: str) -> None:
    analyze = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not on the PATH")
    block = operations_block("ini", after=after).replace("User=polymnia\n", "")
    unit = re.sub(r"/opt/polymnia/bin/polymnia", "/bin/true", block)
    (tmp_path / name).write_text(unit, "utf-8")
    done = subprocess.run(
        [analyze, "verify", "--man=no", f"./{name}"], cwd=tmp_path, capture_output=True
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")


def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    nginx = shutil.which("nginx") or pytest.skip("nginx is not on the PATH")
    openssl = shutil.which("openssl") or pytest.skip("openssl is not on the PATH")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=memory.example.com",
    ]
    subprocess.run(
        [*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    block = operations_block("nginx").replace("listen 443 ssl", "listen 127.0.0.1:44399 ssl")
    block = re.sub(r"/etc/letsencrypt\S+fullchain.pem", str(certificate), block)
    block = re.sub(r"/etc/letsencrypt\S+privkey.pem", str(key), block)
    file = tmp_path / "nginx.conf"
    file.write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{block}}}\n",
        "utf-8",
    )
    done = subprocess.run(
        [nginx, "-t", "-p", str(tmp_path), "-c", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_caddy_accepts_its_configuration(tmp_path: Path) -> None:
    caddy = shutil.which("caddy") or pytest.skip("caddy is not on the PATH")
    (tmp_path / "Caddyfile").write_text(operations_block("caddyfile"), "utf-8")
    done = subprocess.run(
        [caddy, "validate", "--config", "Caddyfile"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
