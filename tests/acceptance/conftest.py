"""A separate deployment for each module that breaks one."""

from collections.abc import Iterator

import pytest

from tests.acceptance.deployment import Deployment, deployed

ODD_FOLDER = "it's däta #1 [50 %], {old} *?"
NO_LOCALE = {"LC_ALL": "C"}  # services are often started without a locale


@pytest.fixture(scope="module")
def millstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A `millstream up` with a data directory of an unusual name."""
    place = tmp_path_factory.mktemp("up")
    data = str(place / ODD_FOLDER)
    with deployed(place / "log", "--data", data, environment=NO_LOCALE) as deployment:
        yield deployment
