"""The reference page of limits lists every limit once, under the module of its noun."""

from collections import Counter

from api.cli.reference.limits import all_limits
from storage.domain import limits
from storage.domain.limits import _shared as units


def test_limits_page_lists_every_limit_once():
    declared = {name for name in vars(limits) if name.isupper()} - set(vars(units))

    assert Counter(limit.name for limit in all_limits()) == Counter(declared)
