"""Alerts of all kinds: their order by harm, groups and mutes."""

from hypothesis import given
from hypothesis import strategies as st

from api.admin.alerts.alert import QUIET_MS, QueueFacts
from api.admin.alerts.engine import LABELS, NAMED_MAX
from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.mutes import AlertMute
from storage.domain.queues.policies import QueueCaps
from storage.domain.queues.queue import QueueSpec
from storage.domain.timeseries.history import NO_HISTORY, StateStart
from storage.domain.timeseries.samples import QueueSample
from tests.unit.admin.alerts.facts import NOW_MS, STEP_MS, alerts_for, find, history, only, stuck


def test_healthy_deployment_has_no_alerts():
    alerts = find(queues=only(QueueFacts(stuck(age_ms=1000))))

    assert (alerts.groups, alerts.quiet, alerts.muted) == ([], [], [])


def test_alerts_are_ordered_by_harm():
    """A queue with 1,616 messages that grew was listed behind a single dead letter, and parked groups were the last."""
    grown = history(ready=[1400, 1616])
    queues = {
        "letters": QueueFacts(
            QueueSample(dead_lettered=9000), history=history(dead_lettered=[0, 9000])
        ),
        "behind": QueueFacts(stuck(2000, received_per_second=2.0)),
        "growing": QueueFacts(stuck(1616), history=grown),
        "parked": QueueFacts(QueueSample(parked=1522)),
        "small": QueueFacts(stuck(1)),
        "unused": QueueFacts(
            stuck(50_000, QUIET_MS), spec=QueueSpec(), history=history(sent_per_second=[0, 0])
        ),
        "full": QueueFacts(stuck(10), QueueCaps(10, None)),
    }

    alerts = alerts_for(queues=queues, checks={"postgres": "no answer"})

    assert [alert.subject.object for alert in alerts] == [
        "postgres",
        "full",
        "growing",
        "small",
        "behind",
        "parked",
        "letters",
        "unused",
    ]


def test_many_alerts_of_one_kind_are_counted():
    queues = {
        f"q{number:05}": QueueFacts(QueueSample(dead_lettered=number + 1))
        for number in range(10_000)
    }

    [old] = find(queues=queues).quiet

    assert (old.objects, len(old.alerts)) == (10_000, NAMED_MAX)
    assert old.waiting == sum(range(10_001))
    assert old.alerts[0].title == "10,000 dead letters in q09999"
    assert old.page == ("/ui/queues", {"state": "dead"})


def test_group_has_first_start_and_last_event_of_its_alerts():
    queues = {
        name: QueueFacts(QueueSample(dead_lettered=3), history=history(dead_lettered=values))
        for name, values in (("a", [0, 1, 1, 1]), ("b", [0, 0, 1, 3]))
    }

    [letters] = find(queues=queues).groups

    assert letters.first is not None
    assert letters.first.start == StateStart(NOW_MS - 2 * STEP_MS)
    assert letters.last_ms == NOW_MS


def mute(kind, name="orders"):
    return AlertMute(
        namespace="default", kind=kind, object=name, muted_by="ada", muted_at_ms=0, until_ms=1
    )


def test_muted_alert_is_listed_apart():
    mutes = [mute(AlertKind.QUEUE_FULL), mute(AlertKind.QUEUE_STALLED)]

    alerts = find(mutes, queues={"orders": QueueFacts(stuck()), "mails": QueueFacts(stuck())})

    assert [alert.subject.object for alert in alerts.groups[0].alerts] == ["mails"]
    assert [(one.mute.kind, one.is_active) for one in alerts.muted] == [
        (AlertKind.QUEUE_STALLED, True),
        (AlertKind.QUEUE_FULL, False),
    ]


def test_state_that_gets_worse_is_not_muted():
    worse = QueueFacts(stuck(), QueueCaps(3, None))

    alerts = find([mute(AlertKind.QUEUE_STALLED)], queues=only(worse))

    assert [group.kind for group in alerts.groups] == [AlertKind.QUEUE_FULL]


SAMPLES = st.builds(
    QueueSample,
    ready=st.integers(0, 50),
    parked=st.integers(0, 5),
    dead_lettered=st.integers(0, 5),
    oldest_ready_at_ms=st.none() | st.integers(NOW_MS - 5 * limits.DAY_MS, NOW_MS),
    received_per_second=st.none() | st.floats(0, 5),
    sent_per_second=st.none() | st.floats(0, 5),
)
FACTS = st.builds(
    QueueFacts,
    SAMPLES,
    caps=st.none() | st.builds(QueueCaps, st.none() | st.integers(1, 50), st.none()),
    spec=st.none() | st.builds(QueueSpec, paused=st.booleans()),
    history=st.just(NO_HISTORY)
    | st.builds(
        lambda ready, sent: history(ready=ready, sent_per_second=sent),
        st.lists(st.integers(0, 50), min_size=3, max_size=3),
        st.lists(st.floats(0, 2), min_size=3, max_size=3),
    ),
)


@given(st.dictionaries(st.sampled_from("abcdefgh"), FACTS))
def test_alerts_are_sorted_by_rank_and_grouped_by_kind(queues):
    alerts = find(queues=queues)

    groups = (*alerts.groups, *alerts.quiet)
    for each in groups:
        ranks = [alert.finding.rank for alert in each.alerts]
        assert ranks == sorted(ranks)
    worst = [each.alerts[0].finding.rank for each in groups]
    assert worst == sorted(worst)
    assert len({each.kind for each in groups}) == len(groups)


@given(FACTS, st.integers(1, 1000))
def test_more_messages_never_rank_lower(facts, extra):
    """Of two queues in the same state, the one with more messages waiting is not behind the other."""
    more = facts._replace(
        caps=None,
        sample=QueueSample(**(as_fields(facts.sample) | {"ready": facts.sample.ready + extra})),
    )
    facts = facts._replace(caps=None)

    ranks = {
        alert.subject: alert.finding.rank
        for alert in alerts_for(queues={"more": more, "same": facts})
    }

    for subject, rank in ranks.items():
        if subject.object == "same":
            assert ranks[AlertSubject(subject.kind, "more")] <= rank


def as_fields(sample):
    return {name: getattr(sample, name) for name in sample.__struct_fields__}


def test_every_kind_has_a_label():
    assert set(LABELS) == set(AlertKind)
