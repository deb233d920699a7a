"""Rules, dashboard and documentation name existing metrics, with labels they have."""

import json
import re
from pathlib import Path

import pytest
import yaml

from api.observability.metrics_catalogue import catalogue, row

ROOT = Path(__file__).parents[3]
CATALOGUE = list(catalogue())
BY_SERIES = {series: metric for metric in CATALOGUE for series in metric.series}
BOARD = json.loads((ROOT / "deploy" / "grafana" / "millstream.json").read_text())
RULES = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yaml").read_text())
SCRAPE = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yaml").read_text())

OF_PROMETHEUS = {"up"}
NOT_OF_METRICS = {"job", "instance"}
RATES = ("rate", "increase", "irate")


def rules():
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def expressions():
    told = [(rule.get("alert") or rule["record"], rule["expr"]) for rule in rules()]
    drawn = [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]
    return told + drawn


EXPRESSIONS = expressions()
IDS = [f"{nth}-{name}" for nth, (name, _) in enumerate(EXPRESSIONS)]
each_expression = pytest.mark.parametrize(("name", "expression"), EXPRESSIONS, ids=IDS)


def series_in(expression):
    """Return (name, requested labels) of each series."""
    matches = re.findall(r"(?<![\w:])(millstream_\w+)(?:\{([^}]*)\})?", expression)
    return [(name, set(re.findall(r"(\w+)\s*[=!]~?", labels))) for name, labels in matches]


@each_expression
def test_series_belongs_to_existing_metric(name, expression):
    series = [found for found, _ in series_in(expression)]

    assert series or any(word in expression for word in OF_PROMETHEUS)
    assert set(series) <= BY_SERIES.keys()


@each_expression
def test_labels_belong_to_the_metric(name, expression):
    for series, asked in series_in(expression):
        assert asked <= {*BY_SERIES[series].labels, "le", *NOT_OF_METRICS}, series
    grouped = {
        label.strip()
        for labels in re.findall(r"\bby \(([^)]*)\)", expression)
        for label in labels.split(",")
    }
    carried = {label for series, _ in series_in(expression) for label in BY_SERIES[series].labels}

    assert grouped <= {*carried, "le"}


@each_expression
def test_counters_are_rated_and_quantiles_use_buckets(name, expression):
    for series, _ in series_in(expression):
        rated = re.search(rf"\b({'|'.join(RATES)})\({series}\b", expression)
        counts = series.endswith(("_total", "_bucket", "_count", "_sum"))
        if series == "millstream_redis_evicted_keys_total":
            continue  # any value at all is too many
        assert bool(rated) == counts, series
    if "histogram_quantile" in expression:
        assert all(series.endswith("_bucket") for series, _ in series_in(expression))
        assert re.search(r"by \([^)]*\ble\b", expression)


@each_expression
def test_store_state_is_not_summed_over_processes(name, expression):
    for series, _ in series_in(expression):
        if BY_SERIES[series].where == "counted":
            continue
        added = re.search(rf"\bsum( by \([^)]*\))? \(?((rate|increase)\()?{series}", expression)
        assert not added
        assert not re.search(rf"\bsum\(((rate|increase)\()?{series}", expression)


def test_every_alert_has_severity_and_summary():
    alerts = [rule for rule in rules() if "alert" in rule]

    assert len({rule["alert"] for rule in alerts}) == len(alerts) >= 15
    for rule in alerts:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"]


def test_every_alert_is_explained():
    page = (ROOT / "docs" / "how-to" / "monitor.md").read_text()

    assert [
        rule["alert"]
        for rule in rules()
        if f"`{rule.get('alert')}`" not in page and "alert" in rule
    ] == []


def test_recording_rules_follow_naming_convention():
    recorded = [rule["record"] for rule in rules() if "record" in rule]

    assert all(re.fullmatch(r"millstream:[a-z_]+:[a-z0-9_]+", name) for name in recorded)


def test_panels_have_unique_ids_and_positions():
    ids = [panel["id"] for panel in BOARD["panels"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]

    assert len(set(ids)) == len(ids)
    assert len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in BOARD["panels"])
    assert {panel["datasource"]["uid"] for panel in panels()} == {"${datasource}"}


def test_scrape_example_uses_authenticated_endpoints():
    paths = {job["metrics_path"] for job in SCRAPE["scrape_configs"]}

    assert paths == {"/metrics", "/metrics/per-object"}
    assert all(job["authorization"]["type"] == "Bearer" for job in SCRAPE["scrape_configs"])
    assert SCRAPE["rule_files"] == ["rules.yaml"]
    assert {job["job_name"] for job in SCRAPE["scrape_configs"]} >= {"millstream"}


def test_metrics_page_lists_exactly_the_catalogue():
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines()

    pages = [line for line in page if line.startswith("| `millstream_")]

    assert pages == [row(metric) for metric in CATALOGUE]
