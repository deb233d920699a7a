"""A separate deployment for each module that breaks one."""

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
