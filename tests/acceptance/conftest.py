"""A separate deployment for each module that breaks one, and one deployment for all pages."""

from collections.abc import Iterator

import pytest

from tests.acceptance.deployment import Deployment, deployed

ODD_FOLDER = "it's däta #1 [50 %], {old} *?"
NO_LOCALE = {"LC_ALL": "C"}  # services are often started without a locale


WITH_SPARK = {"test_kill", "test_kill_archive", "test_kill_replay"}


@pytest.fixture(scope="module")
def millstream(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """A `millstream up` with a data directory of an unusual name; most modules need no worker."""
    place = tmp_path_factory.mktemp("up")
    data = str(place / ODD_FOLDER)
    spark = "auto" if request.module.__name__.rpartition(".")[2] in WITH_SPARK else "off"
    environment = {**NO_LOCALE, "MILLSTREAM_SPARK": spark}
    with deployed(place / "log", "--data", data, environment=environment) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The deployment of a reader of all pages, with two API processes: calls of one session meet both.

    Its tests are in the group `documentation`, so one process has it. It may deliver webhooks to this machine.
    """
    place = tmp_path_factory.mktemp("documentation")
    options = ("--data", str(place / "data"), "--workers", "2")
    allow = {"MILLSTREAM_WEBHOOK_ALLOW": "127.0.0.1"}
    with deployed(place / "log", *options, environment=allow) as deployment:
        yield deployment
