"""The URL of a store on PostgreSQL: libpq's own, with some parameters of ours."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from polymnia.errors import SettingsError
from polymnia.stores.postgres.catalogue import PostgresCatalogue
from polymnia.stores.postgres.database import open_database
from polymnia.stores.postgres.url import parse_url
from tests.postgres import new_database, shared_server


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ann:p%2Fw%2Bd@one,two:5433/memory", {"host": "one,two", "port": ",5433", "password": "p/w+d"}),
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


def test_our_parameters_are_not_libpqs() -> None:
    url = parse_url("postgresql://one/memory?workspace=a%20b&timeout=2.5&connections=3&row_security=on")
    assert (url.workspace, url.timeout, url.connections, url.row_security) == ("a b", 2.5, 3, True)


@pytest.mark.parametrize("parameter", ["timeout=soon", "connections=0", "row_security=yes", "colour=red"])
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
            assert connection.execute("SHOW default_transaction_isolation").fetchone() == ("repeatable read",)
            assert connection.execute("SHOW statement_timeout").fetchone() == ("3s",)
        shared.close()
        catalogue.close()
