"""Rules that decide when a store gets a new epoch."""

import pytest
from msgspec.structs import replace

from storage.domain.log.store_epoch import StoreFacts, StoreIdentity, needs_new_epoch

REMEMBERED = StoreIdentity(epoch=3, replid="a", beacon=100)
SAME = StoreFacts(
    epoch=3, beacon=100, replid="a", promoted=False, fsync_always=True, restarted=False
)


@pytest.mark.parametrize(
    "facts",
    [
        SAME,
        replace(SAME, beacon=101),
        replace(SAME, replid="b", restarted=True),
        replace(SAME, fsync_always=False),
        replace(SAME, promoted=True),
    ],
    ids=["nothing changed", "beacon ahead", "clean restart", "everysec", "known primary"],
)
def test_epoch_is_kept_when_no_data_can_be_lost(facts):
    assert not needs_new_epoch(REMEMBERED, facts)


@pytest.mark.parametrize(
    "facts",
    [
        replace(SAME, epoch=0, beacon=0, replid="b", restarted=True),
        replace(SAME, epoch=2),
        replace(SAME, epoch=4),
        replace(SAME, beacon=99),
        replace(SAME, replid="b", promoted=True, restarted=True),
        replace(SAME, replid="b", restarted=True, fsync_always=False),
    ],
    ids=["empty", "older", "other store", "older copy", "fail-over", "everysec restart"],
)
def test_epoch_increases_when_data_may_be_lost(facts):
    assert needs_new_epoch(REMEMBERED, facts)


def test_new_deployment_gets_an_epoch():
    nothing = StoreIdentity(epoch=0, replid="", beacon=0)

    assert needs_new_epoch(nothing, replace(SAME, epoch=0, beacon=0))
