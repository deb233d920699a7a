"""Spark's requirements: an installation that completes while a worker waits for it."""

import logging

import pytest

from spark_worker.runtime import requirements
from spark_worker.runtime.requirements import SparkRequirement, has_pyspark


@pytest.fixture
def unpacking(tmp_path, monkeypatch):
    """A PySpark that is found first on the path and whose installation has not finished."""
    metadata = tmp_path / "path" / "pyspark-4.3.0.dist-info"
    metadata.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(metadata.parent))
    return metadata


def test_pyspark_is_missing_while_it_is_unpacked(unpacking):
    assert not has_pyspark()

    (unpacking / "INSTALLER").write_text("uv\n")

    assert has_pyspark()


async def test_awaited_spark_is_available_once_complete(unpacking, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(requirements, "PYSPARK_RECHECK_S", 0)
    spark = SparkRequirement(awaited=True)
    assert [await spark.check(), await spark.check()] == [False, False]

    (unpacking / "INSTALLER").write_text("uv\n")

    assert await spark.check()
    assert caplog.messages == ["spark_unavailable", "spark_available"]


async def test_spark_that_is_not_awaited_is_not_looked_for(monkeypatch):
    monkeypatch.setattr(requirements, "missing_requirement", pytest.fail)

    assert await SparkRequirement().check()
