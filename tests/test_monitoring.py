"""The dashboard and the alert rules use metrics that servers have, and the docs list them all."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.postgres import shared_server
from tests.transports.running import Running, Talk, metrics_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "packages" / "monitoring"
NAME = re.compile(r"\bpolymnia_[a-z_]+[a-z]")
OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")
# They need a replica.
OF_REPLICAS = {"polymnia_replica_up", "polymnia_replica_lag_seconds"}


def documented() -> set[str]:
    page = (ROOT / "docs" / "http.md").read_text("utf-8")
    return set(NAME.findall(page.partition("`--metrics` serves")[2].partition("\n## ")[0]))


def served(store: str) -> set[str]:
    with Running(store, "--metrics") as server:
        talk = Talk(server.port)
        talk.call("read_graph")
        talk.close()
        found = metrics_of(server)
    return {OF_HISTOGRAMS.sub("", name.partition("{")[0]) for name in found}


def test_the_dashboard_and_the_alerts_use_documented_metrics() -> None:
    dashboard = json.loads((PACKAGE / "grafana-dashboard.json").read_text("utf-8"))
    rules = yaml.safe_load((PACKAGE / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [rule["expr"] for rule in rules]
    used = {OF_HISTOGRAMS.sub("", name) for text in expressions for name in NAME.findall(text)}
    assert used <= documented()
    assert documented() - used <= {"polymnia_store_bytes"}


def test_a_server_has_the_documented_metrics(tmp_path: Path) -> None:
    of_databases = {name for name in documented() if "_database_" in name} | OF_REPLICAS
    assert served(str(tmp_path / "memory.db")) == documented() - of_databases


@pytest.mark.matrix
def test_a_server_on_a_database_has_the_documented_metrics() -> None:
    assert served(shared_server()) == documented() - OF_REPLICAS
