"""Alerts of consumer groups."""

import pytest

from api.admin.alerts.alert import BAD, INFO, QUIET_MS, WAITS_LONG_MS, WARN, GroupFacts
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.groups.group import GroupKind
from storage.domain.streams.stream import StreamSpec
from storage.domain.timeseries.samples import GroupSample, StreamSample
from tests.unit.admin.alerts.facts import NOW_MS, aging, alerts_for, group, history, stream


def lagging(records=5, lag_ms=WAITS_LONG_MS, **sample):
    return GroupSample(lag_records=records, unread_at_ms=NOW_MS - lag_ms, **sample)


WEEK = StreamSpec().retention_ms or 0


@pytest.mark.parametrize(
    ("facts", "kind", "level"),
    [
        (GroupFacts(lagging()), AlertKind.GROUP_STALLED, BAD),
        (GroupFacts(lagging(members=2)), AlertKind.GROUP_BEHIND, WARN),
        (GroupFacts(lagging(committed_per_second=2.0)), AlertKind.GROUP_BEHIND, WARN),
        (GroupFacts(lagging(), group(paused=True), stream()), AlertKind.GROUP_PAUSED, WARN),
        (
            GroupFacts(
                lagging(lag_ms=WEEK - limits.HOUR_MS),
                group(),
                stream(),
                history=history(lag_ms=aging(WEEK - limits.HOUR_MS)),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(lag_ms=40_000),
                group(),
                stream(retention_ms=60_000),
                history=history(lag_ms=aging(40_000, 4)),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(60),
                group(),
                stream(retention_records=100),
                history=history(lag_records=[20, 40, 60]),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(60),
                group(),
                stream(retention_bytes=1_000),
                StreamSample(records=100, bytes_held=1_000),
                history(lag_records=[20, 40, 60]),
            ),
            AlertKind.GROUP_EXPIRING,
            BAD,
        ),
        (
            GroupFacts(
                lagging(60, members=1),
                group(),
                stream(retention_records=100),
                history=history(lag_records=[60, 60, 60]),
            ),
            AlertKind.GROUP_BEHIND,
            WARN,
        ),
        (
            GroupFacts(
                lagging(lag_ms=2 * QUIET_MS),
                group(),
                stream(),
                history=history(QUIET_MS, lag_records=[5, 5]),
            ),
            AlertKind.GROUP_QUIET,
            INFO,
        ),
    ],
)
def test_state_of_group_has_one_kind(facts, kind, level):
    [alert] = alerts_for(groups={"readers": facts})

    assert (alert.subject, alert.level) == (AlertSubject(kind, "readers"), level)


def test_group_at_the_end_of_retention_is_losing_records():
    """Records are deleted as fast as they age, so that its lag in time stands."""
    facts = GroupFacts(lagging(lag_ms=WEEK), group(), stream(), history=history(lag_ms=[WEEK] * 40))

    [alert] = alerts_for(groups={"readers": facts})

    assert alert.title == "Group readers is losing records"
    assert alert.detail.endswith("Deleted now.")


def test_simple_group_is_not_said_to_lack_members():
    facts = GroupFacts(lagging(), group(kind=GroupKind.SIMPLE), stream())

    assert [alert.title for alert in alerts_for(groups={"a": facts})] == ["Group a is not read"]
