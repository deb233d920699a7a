"""Python processes of tasks: the modules with which they begin."""

import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.parametrize("redis_url", ["plain"], indirect=True)  # no task uses it


async def test_tasks_begin_with_modules_of_daemon(sparks):
    """Loading them took 2 s of processor time in each process."""
    session = await sparks.get()

    begun = session.sparkContext.parallelize([0], 1).map(
        lambda _: "storage.bootstrap" in sys.modules
    )

    assert begun.collect() == [True]


async def test_tasks_load_pyspark_of_installation(sparks):
    """From the zip that Spark puts first, each process compiled every module."""
    session = await sparks.get()

    places = session.sparkContext.parallelize([0], 1).map(lambda _: sys.modules["pyspark"].__file__)

    assert [Path(place) for place in places.collect()] == [Path(pyspark.__file__)]
