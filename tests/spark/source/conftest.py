"""A user's Spark session, and a service that it reaches over HTTP."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from storage.settings import StorageSettings
from tests.spark.source.streams import Stream

_numbers = count(1)


@pytest.fixture(scope="session")
def url(spark_service) -> str:
    """The URL of the service."""
    found: str = spark_service[0]
    return found


@pytest.fixture(scope="session")
def settings(spark_service) -> StorageSettings:
    """The store settings of the service, for archiving."""
    storage_settings: StorageSettings = spark_service[1]
    return storage_settings


@pytest.fixture(scope="session")
def http(url) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=30) as client:
        yield client


def set_active(session: SparkSession) -> None:
    """Set the active session, which Spark looks up by thread."""
    java = session._jvm
    assert java is not None
    java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


@pytest.fixture
def spark(spark_of_the_run, settings) -> Iterator[SparkSession]:
    """The shared session, without leftover queries."""
    session = asyncio.run(spark_of_the_run.lender(settings)()).spark
    set_active(session)
    yield session
    for query in session.streams.active:
        query.stop()


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def stream(http, url) -> Stream:
    """A new stream with two shards."""
    return Stream.made(http, url, f"stream-{next(_numbers)}", shards=2)


@pytest.fixture
def target(http, url) -> Stream:
    """Another new stream, as a write target."""
    return Stream.made(http, url, f"stream-{next(_numbers)}", shards=2)
