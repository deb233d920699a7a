"""Archive selection by `millstream up`, and the message when it is off."""

import pytest

from api.cli.errors import CliError
from api.cli.up import archive_mode
from api.cli.up.archive_mode import (
    AWAITED,
    SWITCHED_OFF,
    resolve_archive_mode,
)
from api.config.settings import Settings
from spark_worker.runtime import requirements
from spark_worker.runtime.requirements import NO_SPARK


def settings(archive_url=None, spark="auto") -> Settings:
    return Settings(archive_url=archive_url, spark=spark)


@pytest.fixture
def without_spark(monkeypatch):
    for module in (archive_mode, requirements):
        monkeypatch.setattr(module, "has_pyspark", lambda: False)


@pytest.fixture
def with_spark(monkeypatch):
    monkeypatch.setattr(archive_mode, "missing_requirement", lambda: None)


def test_archive_defaults_to_data_directory(tmp_path, with_spark):
    own = resolve_archive_mode(settings(), tmp_path)
    elsewhere = resolve_archive_mode(settings("s3://bucket/prefix"), tmp_path)

    assert (own.url, own.has_worker, own.notice) == (f"file://{tmp_path}/archive", True, "")
    assert (elsewhere.url, elsewhere.has_worker) == ("s3://bucket/prefix", True)


@pytest.mark.parametrize(
    ("url", "shared", "is_refused"),
    [
        (None, False, True),
        ("file:///mnt/archive", False, True),
        ("file:///mnt/archive", True, False),
        ("s3://bucket/prefix", False, False),
        ("off", False, False),
    ],
)
def test_cluster_needs_archive_that_executors_share(tmp_path, with_spark, url, shared, is_refused):
    chosen = Settings(archive_url=url, archive_shared=shared, spark_master="spark://one:7077")

    if is_refused:
        with pytest.raises(CliError, match="MILLSTREAM_ARCHIVE_SHARED"):
            resolve_archive_mode(chosen, tmp_path)
    else:
        resolve_archive_mode(chosen, tmp_path)


def test_options_that_cannot_be_set_are_refused_at_start(tmp_path, with_spark):
    (tmp_path / "spark.conf").write_text("spark.master local\n")

    with pytest.raises(CliError, match=r"MILLSTREAM_SPARK_CONF_FILE: .*line 1: spark\.master"):
        resolve_archive_mode(Settings(spark_conf_file=tmp_path / "spark.conf"), tmp_path)
    with pytest.raises(CliError, match=r"MILLSTREAM_SPARK_CONF_FILE: .*No such file"):
        resolve_archive_mode(Settings(spark_conf_file=tmp_path / "none"), tmp_path)


def test_archive_off_is_reported(tmp_path, with_spark):
    decided = resolve_archive_mode(settings("off"), tmp_path)

    assert (decided.url, decided.has_worker) == ("off", False)
    assert decided.notice.startswith("The archive is disabled")


def test_archive_is_off_without_spark_and_says_why(tmp_path, without_spark):
    decided = resolve_archive_mode(settings(), tmp_path)

    assert (decided.url, decided.has_worker) == ("off", False)
    assert decided.notice == f"The archive is disabled: {NO_SPARK}.\n"


def test_missing_java_is_not_waited_for(tmp_path, monkeypatch):
    """The archive was on without a worker, until appends were refused because it was behind."""
    monkeypatch.setattr(archive_mode, "has_pyspark", lambda: True)
    monkeypatch.setattr(archive_mode, "missing_requirement", lambda: "Java 17 is missing")

    decided = resolve_archive_mode(settings(spark="wait"), tmp_path)

    assert (decided.url, decided.has_worker) == ("off", False)
    assert "Java 17 is missing" in decided.notice


@pytest.mark.parametrize("url", [None, "s3://bucket/prefix"])
def test_existing_archive_stays_readable_without_spark(tmp_path, without_spark, url):
    (tmp_path / "archive").mkdir()

    decided = resolve_archive_mode(settings(url), tmp_path)

    assert (decided.url, decided.has_worker) == (url or f"file://{tmp_path}/archive", False)
    assert NO_SPARK in decided.notice


def test_worker_is_left_out_when_spark_is_off(tmp_path, with_spark):
    decided = resolve_archive_mode(settings(spark="off"), tmp_path)

    assert (decided.url, decided.has_worker) == ("off", False)
    assert SWITCHED_OFF in decided.notice


def test_archive_is_on_while_spark_is_awaited(tmp_path, without_spark):
    decided = resolve_archive_mode(settings(spark="wait"), tmp_path)

    assert (decided.url, decided.has_worker, decided.notice) == (
        f"file://{tmp_path}/archive",
        True,
        AWAITED,
    )
