"""A whole Millstream of its own for each module that breaks one."""

from collections.abc import Iterator

import pytest

from tests.acceptance.deployment import Deployment, deployed


@pytest.fixture(scope="module")
def millstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A `millstream up`, and where its data lies."""
    place = tmp_path_factory.mktemp("up")
    with deployed(place / "log", "--data", str(place / "data")) as deployment:
        yield deployment
