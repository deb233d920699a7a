"""Archive selection by `millstream up`, and the message when it is off."""

import pytest

from api.cli.up import archive_mode
from api.cli.up.archive_mode import NO_SPARK, resolve_archive_mode
from api.config.settings import Settings


def settings(archive_url=None) -> Settings:
    return Settings(archive_url=archive_url)


@pytest.fixture
def without_spark(monkeypatch):
    monkeypatch.setattr(archive_mode, "has_pyspark", lambda: False)


@pytest.fixture
def with_spark(monkeypatch):
    monkeypatch.setattr(archive_mode, "why_not", lambda: None)


def test_archive_defaults_to_data_directory(tmp_path, with_spark):
    own = resolve_archive_mode(settings(), tmp_path)
    returned_resolve_archive_mode = resolve_archive_mode(settings("s3://bucket/prefix"), tmp_path)

    assert (own.url, own.works, own.notice) == (f"file://{tmp_path}/archive", True, "")
    assert (returned_resolve_archive_mode.url, returned_resolve_archive_mode.works) == (
        "s3://bucket/prefix",
        True,
    )


def test_archive_off_is_reported(tmp_path, with_spark):
    decided = resolve_archive_mode(settings("off"), tmp_path)

    assert (decided.url, decided.works) == ("off", False)
    assert decided.notice.startswith("The archive is disabled")


def test_archive_is_off_without_spark_and_says_why(tmp_path, without_spark):
    decided = resolve_archive_mode(settings(), tmp_path)

    assert (decided.url, decided.works) == ("off", False)
    assert decided.notice == f"The archive is disabled: {NO_SPARK}.\n"


@pytest.mark.parametrize("told", [None, "s3://bucket/prefix"])
def test_existing_archive_stays_readable_without_spark(tmp_path, without_spark, told):
    (tmp_path / "archive").mkdir()

    decided = resolve_archive_mode(settings(told), tmp_path)

    assert (decided.url, decided.works) == (told or f"file://{tmp_path}/archive", False)
    assert NO_SPARK in decided.notice
