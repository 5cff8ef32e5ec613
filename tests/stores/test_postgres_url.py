"""The URL of a store on PostgreSQL: libpq's own, with some parameters of ours."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from polymnia.cli.main import main
from polymnia.errors import SettingsError
from polymnia.stores import hide_passwords
from polymnia.stores.postgres.catalogue import PostgresCatalogue
from polymnia.stores.postgres.database import open_database
from polymnia.stores.postgres.url import parse_url
from tests.postgres import new_database, shared_server


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://ann:p%2Fw%2Bd@one,two:5433/memory",
            {"host": "one,two", "port": ",5433", "password": "p/w+d"},
        ),
        ("postgresql:///memory", {"dbname": "memory"}),
        ("postgresql:///memory?host=/run/postgresql&timeout=5", {"host": "/run/postgresql"}),
        ("postgresql://one/memory?options=-c%20geqo%3Doff", {"options": "-c geqo=off"}),
        ("postgresql://one/memory?sslrootcert=/a+b.crt", {"sslrootcert": "/a+b.crt"}),
        ("postgresql://one/memory?target_session_attrs=any", {"target_session_attrs": "any"}),
    ],
)
def test_libpq_gets_its_part_of_a_url_as_it_is(url: str, expected: dict[str, str]) -> None:
    found = conninfo_to_dict(parse_url(url).conninfo)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:pass@one/memory", "postgresql://ann:***@one/memory"),
        (
            "postgres://ann:p@ss@one:5433/memory?workspace=w",
            "postgres://ann:***@one:5433/memory?workspace=w",
        ),
        (
            "postgresql://one/memory?password=pass&timeout=5",
            "postgresql://one/memory?password=***&timeout=5",
        ),
        (
            "x in postgresql://ann:pass@one/memory; try again",
            "x in postgresql://ann:***@one/memory; try again",
        ),
        ("postgresql://ann@one:5432/memory", "postgresql://ann@one:5432/memory"),
        ("memory.db", "memory.db"),
    ],
)
def test_a_password_is_not_shown(text: str, shown: str) -> None:
    assert hide_passwords(text) == shown


def test_commands_show_no_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "memory.jsonl").write_text(
        '{"type":"entity","name":"Ada","entityType":"x","observations":[]}', "utf-8"
    )
    with new_database(shared_server()) as url:
        store = ["--store", f"{url}?workspace=default"]
        for command in (
            ["import", str(tmp_path / "memory.jsonl")],
            ["stats"],
            ["doctor"],
            ["show", "Bob"],
        ):
            main([*command, *store])
        said = "".join(capsys.readouterr())
        assert said.count(hide_passwords(url)) >= 3
        assert str(urlsplit(url).password) not in said


def test_our_parameters_are_not_libpqs() -> None:
    url = parse_url(
        "postgresql://one/memory?workspace=a%20b&timeout=2.5&connections=3&row_security=on"
    )
    assert (url.workspace, url.timeout, url.connections, url.row_security) == ("a b", 2.5, 3, True)


@pytest.mark.parametrize(
    "parameter", ["timeout=soon", "connections=0", "row_security=yes", "colour=red"]
)
def test_a_parameter_that_makes_no_sense_is_an_error(parameter: str) -> None:
    with pytest.raises(SettingsError, match=parameter.partition("=")[0]):
        parse_url(f"postgresql://one/memory?{parameter}")


def test_settings_of_connections_do_not_come_with_the_login() -> None:
    """A pooler such as PgBouncer refuses logins with settings."""
    with new_database(shared_server()) as database:
        url = f"{database}?timeout=3&connections=1"
        catalogue = PostgresCatalogue(url)
        catalogue.create("one")
        catalogue.open("one").compact()
        shared = open_database(parse_url(url))
        with shared.connection() as connection:
            assert connection.info.options == ""
            assert connection.execute("SHOW default_transaction_isolation").fetchone() == (
                "repeatable read",
            )
            assert connection.execute("SHOW statement_timeout").fetchone() == ("3s",)
        shared.close()
        catalogue.close()
