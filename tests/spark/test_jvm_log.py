"""Log of the JVM: what `log4j2.properties` leaves out."""

import pytest

pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)  # nothing uses it

TASK = "Lost task 3.0 in stage 11.0 (TID 17) (192.0.2.2 executor driver)"
VERDICTS = {
    f"{TASK}: TaskKilled (Stage cancelled: Job 11 cancelled part of cancelled job group a-1": "DENY",
    "Incomplete task interrupted: Attempting to kill Python Worker - task 0.0 (TID 0)": "DENY",
    f"{TASK}: org.apache.spark.SparkRuntimeException: no\nTaskKilled (x": "NEUTRAL",
    f"{TASK}: ExecutorLostFailure (executor 1 exited)": "NEUTRAL",
    "Task 0 in stage 1.0 failed 1 times; aborting job": "NEUTRAL",
}


@pytest.mark.parametrize(
    ("message", "verdict"),
    VERDICTS.items(),
    ids=["killed", "interrupted", "failed", "lost", "aborted"],
)
async def test_warnings_of_cancelled_tasks_alone_are_left_out(sparks, message, verdict):
    jvm = (await sparks.get())._jvm.org.apache.logging.log4j
    config = jvm.LogManager.getContext(False).getConfiguration()
    event = (
        jvm.core.impl.Log4jLogEvent.newBuilder()
        .setLevel(jvm.Level.WARN)
        .setMessage(jvm.message.SimpleMessage(message))
        .build()
    )

    assert config.getFilter().filter(event).toString() == verdict
