"""Back-tests of a job: pieces have each message once, and their results add up to one."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.log.record_batch import SUBJECT, Record
from storage.domain.names import TopicName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.back_test import (
    BackTest,
    BackTestEvaluator,
    BackTestResult,
    BackTestSpec,
)

ORDERS = TopicName("orders")
SAMPLES = 4


def spec_of(ranges: Sequence[OffsetRange], piece_messages: int = 3) -> BackTestSpec:
    test = BackTest(
        match=[{"subject": "a.#"}, {"filter": {"key": ["x"]}}],
        compare_with="billing",
        samples_max=SAMPLES,
    )
    return BackTestSpec(
        topic=ORDERS.name,
        stream_id="0" * 16,
        test=test,
        compared={"subject": "*.b"},
        ranges=tuple(ranges),
        piece_messages=piece_messages,
    )


def evaluated(spec: BackTestSpec, entries: Sequence[LogRecord]) -> BackTestResult:
    evaluator = BackTestEvaluator(ORDERS, spec)
    evaluator.add(0, entries)
    return evaluator.result


ranges = st.builds(
    lambda shard, first, count: OffsetRange(shard, first, first + count),
    st.integers(0, 3),
    st.integers(0, 50),
    st.integers(1, 40),
)


@given(st.lists(ranges, max_size=4), st.integers(1, 12))
def test_pieces_have_each_message_once_in_order(ranges, piece_messages):
    spec = spec_of(ranges, piece_messages)

    def messages(of: Sequence[OffsetRange]) -> list[tuple[int, int]]:
        return [(one.shard, offset) for one in of for offset in range(one.first, one.end)]

    pieces = spec.pieces()

    assert messages(pieces) == messages(ranges)
    assert len(messages(pieces)) == spec.messages
    assert all(0 < piece.end - piece.first <= piece_messages for piece in pieces)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "a.b", "b", "c.b"]), st.sampled_from("xy"))),
    st.sets(st.integers(0, 30)),
)
def test_results_of_pieces_add_up_to_that_of_all(messages, cuts):
    entries = [
        LogRecord(offset, 1, Record(b"{}", key, ((SUBJECT, "", subject.encode()),)))
        for offset, (subject, key) in enumerate(messages)
    ]
    spec = spec_of([])
    total = BackTestResult()

    for low, high in pairwise(sorted({0, len(entries), *cuts})):
        total.add(evaluated(spec, entries[low:high]), SAMPLES)

    assert total == evaluated(spec, entries)


def test_result_is_incomplete_when_a_piece_is():
    total = BackTestResult(evaluated=2)
    total.add(BackTestResult(evaluated=1, complete=False), SAMPLES)
    total.add(BackTestResult(evaluated=4), SAMPLES)
    assert total == BackTestResult(evaluated=7, complete=False)
