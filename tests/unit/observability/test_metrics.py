"""The catalogue of metrics, and buffered counting."""

import re

import pytest
from prometheus_client import REGISTRY

from api.observability.background_metrics import count_primary_change
from api.observability.metric_buffers import MetricBuffers, RequestMetrics
from api.observability.metric_definitions import LATENCY_SECONDS, MESSAGES_NACKED, STORE_FAILOVERS
from api.observability.metrics_catalogue import METRICS, OBJECT_METRICS, STATE_METRICS
from storage.domain.replication.replica_set import PrimaryChange


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_metric_names_follow_conventions(metric):
    [family] = metric.describe()

    assert re.fullmatch(r"millstream_[a-z_]+", family.name)
    assert not family.name.endswith(("_ms", "_milliseconds", "_kb"))


@pytest.mark.parametrize("metric", [*STATE_METRICS, *OBJECT_METRICS])
def test_metric_name_suffix_matches_its_type(metric):
    assert re.fullmatch(r"millstream_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.name.endswith("_info") == (metric.kind == "info")


def test_counts_are_published_at_flush():
    counts = MetricBuffers()
    tally = counts.counter(MESSAGES_NACKED.labels("test-tally"))
    tally.count += 3
    before = sample("millstream_messages_nacked_total", kind="test-tally")

    counts.flush()
    counts.flush()

    assert before == 0
    assert sample("millstream_messages_nacked_total", kind="test-tally") == 3


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.0051, 0.3, 10, 11])
def test_observation_falls_into_the_correct_bucket(seconds):
    counts = MetricBuffers()
    labels = {"operation": f"test-{seconds}", "status_class": "2xx", "protocol": "http"}
    RequestMetrics(counts, "http").observe(labels["operation"], 204, seconds)

    counts.flush()

    name = "millstream_request_duration_seconds"
    assert sample(f"{name}_count", **labels) == 1
    assert sample(f"{name}_sum", **labels) == seconds
    for bound in LATENCY_SECONDS:
        actual_sample = sample(f"{name}_bucket", **labels, le=str(float(bound)))
        assert actual_sample == (1 if seconds <= bound else 0)


def test_changes_of_the_primary_are_counted_by_kind():
    """Every kind exists before the first change, or Prometheus would see no increase."""
    name = "millstream_store_failovers_total"
    kinds = {kind.value for kind in PrimaryChange}
    [family] = STORE_FAILOVERS.collect()
    before = sample(name, kind="fail_over")

    count_primary_change(PrimaryChange.FAIL_OVER)

    assert {one.labels["kind"] for one in family.samples} == kinds
    assert sample(name, kind="fail_over") == before + 1
