"""Every page of the dashboard, as the tests that hold for all of them look at it."""

from typing import NamedTuple


class At(NamedTuple):
    """A page: a name for its screenshots, and where it is in `tests.browser.world`."""

    name: str
    path: str


PAGES: list[At] = []
