"""A whole Millstream of its own for each module that breaks one."""

from collections.abc import Iterator

import pytest

from tests.acceptance.deployment import Deployment, deployed

ODD_FOLDER = "it's däta #1 [50 %], {old} *?"
NO_LOCALE = {"LC_ALL": "C"}  # as services are often started


@pytest.fixture(scope="module")
def millstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A `millstream up`, and where its data lies."""
    place = tmp_path_factory.mktemp("up")
    data = str(place / ODD_FOLDER)
    with deployed(place / "log", "--data", data, environment=NO_LOCALE) as deployment:
        yield deployment
