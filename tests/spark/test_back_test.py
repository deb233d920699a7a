"""Back-tests on Spark: the result of a waiting call, from both tiers, and after killed workers."""

import pytest

from spark_worker.main import HANDLERS
from storage.domain.jobs import JobKind, JobState
from storage.domain.names import QueueName, RouteName, TopicName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.back_test import BackTest, BackTestResult
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.domain.topics.topic import NewPublication
from tests.conditions import eventually
from tests.spark.attempts import has_failed
from tests.spark.workers import ON_SPARK, QUICK, worker_process
from tests.tiered_stream import move_to_archive

pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)

ORDERS = TopicName("orders")
MESSAGES, PIECE = 3_000, 250
TEST = BackTest(
    match={"subject": "order.*", "filter": {"body": {"total": [{"numeric": [">", 40]}]}}},
    compare_with="billing",
    samples_max=3,
)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr("storage.domain.limits.BACK_TEST_PIECE_MESSAGES", PIECE)


async def publish(storage, first: int, count: int) -> None:
    for start in range(first, first + count, 500):
        messages = [
            NewPublication(
                b'{"total": %d}' % (number % 100),
                "refund.created" if number % 5 == 0 else "order.created",
                key=f"k{number % 17}",
            )
            for number in range(start, min(start + 500, first + count))
        ]
        await storage.topics.publish(ORDERS, messages)


@pytest.fixture
async def expected(storage, stores) -> BackTestResult:
    """The result of a waiting call, on messages of which two thirds are in the archive alone."""
    await storage.topics.put(ORDERS, StreamSpec(shards=2, hot_retention_ms=0))
    await storage.catalog.put_queue(QueueName("billing"), QueueSpec())
    spec = RouteSpec(
        target=RouteTarget(queue="billing"),
        match={"filter": {"body": {"total": [{"numeric": ["<", 60]}]}}},
    )
    await storage.topic_routes.put(RouteName(ORDERS, "billing"), spec)
    await publish(storage, 0, MESSAGES * 2 // 3)
    await move_to_archive(storage, stores, ORDERS.stream)
    await publish(storage, MESSAGES * 2 // 3, MESSAGES // 3)
    result: BackTestResult = await storage.back_tests.run(ORDERS, TEST)
    return result


def without_samples(result: BackTestResult) -> dict[str, object]:
    counts = ("evaluated", "matched", "gained", "lost", "failed_by_path", "complete")
    return {name: getattr(result, name) for name in counts}


async def test_job_has_the_result_of_a_waiting_call(storage, working, ended, expected, heard):
    submitted = await storage.back_tests.submit(ORDERS, TEST)
    await publish(storage, MESSAGES, 100)  # after the call

    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(submitted.job.job_id)

    result = (await storage.back_tests.get(ORDERS, over.job_id)).result
    assert over.state is JobState.DONE, over.failure
    assert (result.evaluated, result.complete) == (MESSAGES, True)
    assert without_samples(result) == without_samples(expected)
    assert [one.shard for one in result.gained_ids] == [0, 0, 0]
    assert result.gained_ids == sorted(result.gained_ids, key=lambda one: one.offset)
    [(kind, _, _, gained)] = heard
    assert (kind, gained["evaluated"]) == (JobKind.BACK_TEST, MESSAGES)


@pytest.mark.parametrize(
    "fault",
    [
        "back_test.after_save",
        pytest.param("back_test.evaluated", marks=pytest.mark.chaos),
        pytest.param("back_test.in_task", marks=pytest.mark.chaos),
    ],
)
async def test_message_counts_once_when_a_worker_is_killed(
    storage, stores, working, ended, expected, tmp_path, fault
):
    job_id = (await storage.back_tests.submit(ORDERS, TEST)).job.job_id

    with worker_process(
        stores, tmp_path / "log", "real", ON_SPARK, MILLSTREAM_FAULT=fault
    ) as worker:
        await has_failed(storage, worker, job_id)
    async with working(HANDLERS, limits=ON_SPARK):
        over = await ended(job_id)

    assert over.state is JobState.DONE, over.failure
    assert over.attempt > 1
    assert without_samples((await storage.back_tests.get(ORDERS, job_id)).result) == (
        without_samples(expected)
    )


async def test_small_job_runs_without_spark(storage, working, ended, expected, sparks):
    submitted = await storage.back_tests.submit(ORDERS, TEST)

    async with working(HANDLERS):
        over = await ended(submitted.job.job_id)

    assert over.state is JobState.DONE, over.failure
    assert without_samples((await storage.back_tests.get(ORDERS, over.job_id)).result) == (
        without_samples(expected)
    )
    assert not sparks.running


async def test_cancelled_job_keeps_its_result(storage, working, ended, expected, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.BACK_TEST_PIECE_MESSAGES", 1)
    job_id = (await storage.back_tests.submit(ORDERS, TEST)).job.job_id

    async def evaluated() -> bool:
        return bool((await storage.back_tests.get(ORDERS, job_id)).result.evaluated)

    async with working(HANDLERS):
        await eventually(evaluated, True)
        await storage.jobs.cancel(job_id)
        over = await ended(job_id)

    result = (await storage.back_tests.get(ORDERS, job_id)).result
    assert over.state is JobState.CANCELLED
    assert (0 < result.evaluated < MESSAGES, result.complete) == (True, False)


@pytest.mark.parametrize("limits", [QUICK, ON_SPARK], ids=["small", "spark"])
async def test_job_of_deleted_topic_fails_at_once(storage, working, ended, expected, limits):
    job_id = (await storage.back_tests.submit(ORDERS, TEST)).job.job_id
    await storage.topics.delete(ORDERS)

    async with working(HANDLERS, limits=limits):
        over = await ended(job_id)

    assert (over.state, over.attempt) == (JobState.FAILED, 1)
    assert "Topic 'orders' does not exist" in over.failure
