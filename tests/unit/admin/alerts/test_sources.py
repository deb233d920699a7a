"""Alerts of sources."""

import pytest

from api.admin.alerts.alert import BAD, WARN, SourceFacts
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind
from storage.domain.names import SourceName
from storage.domain.sources.source import (
    InboundSource,
    SourceCounts,
    SourceSpec,
    SourceTarget,
    WebhookProvider,
)
from storage.domain.timeseries.history import StateStart
from tests.unit.admin.alerts.facts import NOW_MS, alerts_for


def source(**spec):
    return InboundSource(
        name=SourceName("github"),
        source_id="s",
        spec=SourceSpec(
            provider=WebhookProvider.GITHUB,
            secrets=("a secret of the provider",),
            into=SourceTarget(queue="orders"),
            **spec,
        ),
        tokens=(),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )


@pytest.mark.parametrize(
    ("counts", "kind", "level"),
    [
        (SourceCounts(waiting=3, waiting_since_ms=NOW_MS - 1000), None, ""),
        (
            SourceCounts(waiting=3, waiting_since_ms=NOW_MS - limits.SOURCE_BLOCKED_MS),
            AlertKind.SOURCE_BLOCKED,
            BAD,
        ),
        (
            SourceCounts(waiting=3, waiting_bytes=limits.OUTBOX_BYTES_MAX, waiting_since_ms=1),
            AlertKind.SOURCE_FULL,
            BAD,
        ),
        (SourceCounts(rejected=1, last_rejected_at_ms=NOW_MS), AlertKind.SOURCE_REJECTING, WARN),
        (SourceCounts(last_rejected_at_ms=NOW_MS - 2 * limits.DAY_MS), None, ""),
        (SourceCounts(last_rejected_at_ms=NOW_MS - 2, last_accepted_at_ms=NOW_MS), None, ""),
    ],
)
def test_state_of_source_has_one_kind(counts, kind, level):
    alerts = alerts_for(sources=[SourceFacts(source(), counts, "no such queue")])

    assert [(alert.subject.kind, alert.level) for alert in alerts] == [(kind, level)] * bool(kind)


def test_waiting_events_have_reason_and_size():
    counts = SourceCounts(waiting=2, waiting_bytes=2048, waiting_since_ms=7)

    [failing] = alerts_for(sources=[SourceFacts(source(), counts, "no such queue")])
    [paused] = alerts_for(sources=[SourceFacts(source(paused=True), counts)])

    assert failing.detail == "2 events wait for the target, 2.0 KiB. no such queue"
    assert paused.detail == "2 events wait for the target, 2.0 KiB. It is paused."
    assert (failing.target, paused.target) == ("", "paused")
    assert failing.start == StateStart(7)
