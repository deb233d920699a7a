"""A deployment that is broken at random keeps its promises: a slice, of which `make faults` runs six minutes in CI."""

import pytest

from tests.chaos.history import Outcome
from tests.chaos.run import run
from tests.chaos.tools import Tools

SLICE_S = 10.0
SLICE_SEED = (
    4646  # both stores and an API process killed or cut off, and lost replies on every link
)


RARE = 3  # what comes too late needs longer than this to be refused


@pytest.mark.chaos
@pytest.mark.one_store
async def test_a_deployment_that_is_broken_at_random_keeps_its_promises(tmp_path):
    verdict = await run(SLICE_SEED, SLICE_S, tmp_path, Tools(), archives=False)

    assert verdict.is_sound, verdict.report()
    assert verdict.faults
    assert len([one for one in verdict.findings if one.holds]) >= len(verdict.findings) - RARE
    assert verdict.operations["send"][Outcome.OK] > 0
