"""Tests that ``/metrics`` has the metrics that the dashboard and the alerts of ``deploy/``
read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for

from .conftest import HEIGHTS, Companion, Serve, node_of
from .test_follow import reaches

DEPLOY = Path(__file__).parents[2] / "deploy"
# Prometheus's own metric, and the labels that it adds.
UP, TARGET = "up", {"job", "instance"}
_SELECTOR = re.compile(r"\b(noderpc_\w+|up)\b(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\b(?:by|on|ignoring) \(([^)]*)\)")
_SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def queries_of_alerts() -> list[str]:
    """Return the expressions of all rules, with the queries in their texts."""
    text = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    _, *rules = re.sub(r"^ *#.*$", "", text, flags=re.MULTILINE).split("- alert:")
    return rules


def queries_of_the_dashboard() -> list[str]:
    """Return all queries, with their legends."""
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    _, instance = dashboard["templating"]["list"]
    assert instance["definition"] == "label_values(noderpc_height, instance)"
    return [
        f"{target['expr']} {target['legendFormat']}"
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


@pytest.fixture
def served(chain: SampleChain, serve_node: Serve, companion: Companion) -> dict[str, set[str]]:
    """Return the names of a companion's samples, with their labels."""
    followed = companion(serve_node(node_of(chain)))
    followed.follow()
    reaches(followed, HEIGHTS)
    client = app_for(followed, dialect="comet-0.38", metrics=True).test_client()
    client.get("/block?height=1")
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


def unknown(query: str, served: dict[str, set[str]]) -> Iterator[str]:
    """Yield the metrics and labels of a query that are not served."""
    known = set(TARGET)
    for name, selected in _SELECTOR.findall(query):
        if name != UP and name not in served:
            # An expression may name a histogram as a whole.
            if f"{name}_bucket" not in served or selected:
                yield name
            continue
        labels = TARGET | served.get(name, set())
        known |= labels
        yield from set(_LABEL.findall(selected)) - labels
    grouped = {each.strip() for group in _GROUPED.findall(query) for each in group.split(",")}
    yield from (grouped | set(_SHOWN.findall(query))) - known


def test_all_metrics_and_labels_exist(served: dict[str, set[str]]) -> None:
    queries = queries_of_alerts() + queries_of_the_dashboard()
    assert len(queries) > 30
    found = {query: list(unknown(query, served)) for query in queries}
    assert {query: names for query, names in found.items() if names} == {}


def test_names_that_do_not_exist_are_found(served: dict[str, set[str]]) -> None:
    for query, name in (
        ("rate(noderpc_call_total[5m])", "noderpc_call_total"),
        ('noderpc_height{chains="a"}', "chains"),
        ("sum by (chain, methods) (noderpc_height)", "methods"),
        ("noderpc_height {{pid}}", "pid"),
        ("up == 0 {{ $labels.chain }}", "chain"),
    ):
        assert list(unknown(query, served)) == [name]


def test_every_metric_of_the_docs_is_on_the_dashboard(served: dict[str, set[str]]) -> None:
    shown = set(re.findall(r"noderpc_\w+", " ".join(queries_of_the_dashboard())))
    own = {name for name in served if name.startswith("noderpc_")}
    # prometheus_client adds these to each counter and histogram.
    parts = {name for name in own if name.endswith(("_created", "_count", "_sum"))}
    assert own - parts - shown == set()
