"""A planner on the Spark session of the run."""

import asyncio

import pytest

from spark_worker.views.executor import Executor
from spark_worker.views.planning.planner import ViewPlanner
from storage.settings import StorageSettings

STORES = StorageSettings(redis_url="redis://unused", database_url="postgresql://unused")


@pytest.fixture
def planner(spark_of_the_run) -> ViewPlanner:
    return ViewPlanner(asyncio.run(spark_of_the_run.lender(STORES)()).spark)


@pytest.fixture
def executor(planner) -> Executor:
    return Executor(planner.spark, planner.plans)
