"""Alerts of queues: one for each state, and what they say."""

import pytest

from api.admin.alerts.alert import BAD, INFO, QUIET_MS, WARN, QueueFacts
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.queues.policies import QueueCaps
from storage.domain.queues.queue import QueueSpec
from storage.domain.timeseries.history import StateStart
from storage.domain.timeseries.samples import QueueSample
from tests.unit.admin.alerts.facts import (
    NOW_MS,
    STEP_MS,
    aging,
    alerts_for,
    history,
    kinds_for,
    only,
    stuck,
)

PAUSED, DEFAULT = QueueSpec(paused=True), QueueSpec()
DAYS_3 = 3 * limits.DAY_MS


@pytest.mark.parametrize(
    ("facts", "kind", "level"),
    [
        (QueueFacts(stuck()), AlertKind.QUEUE_STALLED, BAD),
        (QueueFacts(stuck(received_per_second=2.0)), AlertKind.QUEUE_BEHIND, WARN),
        (
            QueueFacts(
                stuck(),
                history=history(received_per_second=[1, 0, 0], acknowledged_per_second=[0, 1, 0]),
            ),
            AlertKind.QUEUE_BEHIND,
            WARN,
        ),
        (
            QueueFacts(
                stuck(received_per_second=2.0, acknowledged_per_second=0.0),
                history=history(
                    received_per_second=[2] * 60, acknowledged_per_second=[1] * 20 + [0] * 40
                ),
            ),
            AlertKind.QUEUE_BLOCKED,
            BAD,
        ),
        (QueueFacts(stuck(), spec=PAUSED), AlertKind.QUEUE_PAUSED, WARN),
        (QueueFacts(stuck(), QueueCaps(3, None)), AlertKind.QUEUE_FULL, BAD),
        (QueueFacts(QueueSample(delayed=3), QueueCaps(3, None)), AlertKind.QUEUE_FULL, BAD),
        (QueueFacts(stuck(bytes_held=75), QueueCaps(None, 99)), AlertKind.QUEUE_FULL, BAD),
        (QueueFacts(stuck(bytes_held=75), QueueCaps(4, 100)), AlertKind.QUEUE_STALLED, BAD),
        (QueueFacts(stuck(age_ms=DAYS_3), spec=DEFAULT), AlertKind.QUEUE_EXPIRING, BAD),
        (
            QueueFacts(stuck(age_ms=60_000), spec=QueueSpec(retention_ms=100_000)),
            AlertKind.QUEUE_EXPIRING,
            BAD,
        ),
        (
            QueueFacts(
                stuck(age_ms=QUIET_MS), spec=DEFAULT, history=history(sent_per_second=[0, 0])
            ),
            AlertKind.QUEUE_QUIET,
            INFO,
        ),
        (
            QueueFacts(
                stuck(age_ms=QUIET_MS), spec=PAUSED, history=history(sent_per_second=[0, 1])
            ),
            AlertKind.QUEUE_PAUSED,
            WARN,
        ),
        (
            QueueFacts(stuck(), spec=DEFAULT, is_dead_letter_queue=True),
            AlertKind.DEAD_LETTER_QUEUE_OLD,
            INFO,
        ),
        (
            QueueFacts(
                stuck(),
                spec=DEFAULT,
                history=history(moved_in_per_second=[0, 1]),
                is_dead_letter_queue=True,
            ),
            AlertKind.DEAD_LETTER_QUEUE,
            WARN,
        ),
        (QueueFacts(QueueSample(parked=4)), AlertKind.QUEUE_PARKED, WARN),
        (
            QueueFacts(
                QueueSample(parked=4),
                spec=DEFAULT,
                history=history(QUIET_MS, parked=[4, 4], sent_per_second=[0, 0]),
            ),
            AlertKind.QUEUE_QUIET,
            INFO,
        ),
        (
            QueueFacts(
                QueueSample(parked=4),
                spec=DEFAULT,
                history=history(QUIET_MS, parked=[4, 4], sent_per_second=[0, 1]),
            ),
            AlertKind.QUEUE_PARKED,
            WARN,
        ),
        (QueueFacts(QueueSample(dead_lettered=4)), AlertKind.DEAD_LETTERS_OLD, INFO),
        (
            QueueFacts(QueueSample(dead_lettered=4, dead_full_per_second=1.0)),
            AlertKind.DEAD_LETTERS,
            BAD,
        ),
        (
            QueueFacts(QueueSample(dead_lettered=4), history=history(dead_lettered=[1, 4])),
            AlertKind.DEAD_LETTERS,
            BAD,
        ),
        (
            QueueFacts(QueueSample(dead_lettered=4), history=history(dead_lettered=[4, 4])),
            AlertKind.DEAD_LETTERS_OLD,
            INFO,
        ),
    ],
)
def test_state_of_queue_has_one_kind(facts, kind, level):
    [alert] = alerts_for(queues=only(facts))

    assert (alert.subject, alert.level) == (AlertSubject(kind, "orders"), level)


def test_consumed_queue_whose_age_stands_loses_nothing():
    """Its oldest message is as old as ever: consumers keep up."""
    ages = [DAYS_3] * 40
    facts = QueueFacts(
        stuck(age_ms=DAYS_3, received_per_second=1.0, acknowledged_per_second=1.0),
        spec=DEFAULT,
        history=history(oldest_age_ms=ages, sent_per_second=[1] * 40),
    )

    assert kinds_for(queues=only(facts)) == [AlertKind.QUEUE_BEHIND]


def test_consumed_queue_loses_messages_when_age_grows():
    facts = QueueFacts(
        stuck(age_ms=DAYS_3, received_per_second=1.0),
        spec=QueueSpec(retention_ms=DAYS_3 + limits.HOUR_MS * 2),
        history=history(oldest_age_ms=aging(DAYS_3)),
    )

    [alert] = alerts_for(queues=only(facts))

    assert alert.subject.kind is AlertKind.QUEUE_EXPIRING


def test_queue_has_alerts_about_each_of_its_states():
    facts = QueueFacts(stuck(parked=5, dead_lettered=2))

    assert kinds_for(queues=only(facts)) == [
        AlertKind.QUEUE_PARKED,
        AlertKind.QUEUE_STALLED,
        AlertKind.DEAD_LETTERS_OLD,
    ]


def test_texts_of_full_and_expiring_queues_name_the_consequence():
    full = QueueFacts(stuck(3), QueueCaps(3, None))
    expiring = QueueFacts(stuck(age_ms=DAYS_3 + limits.HOUR_MS), spec=DEFAULT)

    texts = {alert.title: alert.detail for alert in alerts_for(queues={"a": full, "b": expiring})}

    assert texts["a is full"] == "3 messages, 0 B. Sends are rejected."
    assert texts["b is losing messages"].endswith("Deleted in 23 h.")


def test_alert_has_start_of_its_state_and_last_event():
    facts = QueueFacts(QueueSample(dead_lettered=3), history=history(dead_lettered=[0, 1, 1, 3, 3]))

    [alert] = alerts_for(queues=only(facts))

    assert alert.start == StateStart(NOW_MS - 3 * STEP_MS)
    assert alert.last_ms == NOW_MS - STEP_MS
    assert alert.detail == "3 in the last hour."
