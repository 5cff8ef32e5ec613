"""Exploring relations over the native dialect: names, types, and ends without an entity."""

import pytest

from polymnia.engine.memory import Memory
from tests.dialects.conversation import Client


@pytest.fixture
def client(memory: Memory) -> Client:
    client = Client("native", memory)
    relations = [
        {"from": "Rui Tavares", "type": "administers", "to": "tide-db"},
        {"from": "Tidepool", "type": "owns", "to": "harbour"},
    ]
    names = ("Rui Tavares", "Tidepool", "harbour", "Žofia Novák", "Ana Silva", "Ana Sousa")
    entities = [{"name": name, "facts": [f"{name} is known"]} for name in names]
    client.text("remember", {"entities": entities, "relations": relations})
    return client


def test_a_relation_to_a_name_without_an_entity_is_shown(client: Client) -> None:
    assert "Rui Tavares -administers-> tide-db" in client.text("explore", {"name": "Rui Tavares"})


def test_a_name_without_an_entity_shows_what_points_at_it(client: Client) -> None:
    assert "Rui Tavares -administers-> tide-db" in client.text("explore", {"name": "tide-db"})


def test_the_type_of_a_relation_is_found_in_any_case(client: Client) -> None:
    explored = client.text("explore", {"name": "Tidepool", "type": "OWNS"})
    assert "Tidepool -owns-> harbour" in explored


def test_a_missing_type_of_relation_names_those_that_there_are(client: Client) -> None:
    explored = client.text("explore", {"name": "Tidepool", "type": "leads"})
    assert "Tidepool has no relations of type leads in default; types: owns." in explored


def test_part_of_a_name_is_explored_and_said(client: Client) -> None:
    explored = client.text("explore", {"name": "zofia"})
    assert explored == '"zofia" was taken as Žofia Novák. Žofia Novák has no relations in default.'


def test_an_unclear_name_is_answered_with_candidates(client: Client) -> None:
    assert client.error("explore", {"name": "Ana"}) == (
        "there is no entity Ana in default; similar: Ana Silva, Ana Sousa"
    )


def test_a_list_of_one_name_is_explored(client: Client) -> None:
    assert "Tidepool -owns-> harbour" in client.text("explore", {"names": ["Tidepool"]})


def test_a_path_says_which_names_were_taken(client: Client) -> None:
    path = client.text("explore", {"name": "tidepool", "to": "harbour"})
    assert '"tidepool" was taken as Tidepool.' in path


def test_a_path_to_a_name_without_an_entity_is_refused(client: Client) -> None:
    refusal = client.error("explore", {"name": "Rui Tavares", "to": "tide-db"})
    assert refusal.startswith("tide-db has no entity yet, only relations: explore it without to")
