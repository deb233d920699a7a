"""A deployment that is broken at random keeps its promises: a slice of what `make chaos` runs for longer."""

import pytest

from tests.chaos.history import Outcome
from tests.chaos.run import run

SLICE_S = 15.0
SLICE_SEED = (
    43  # kills of an API process and of each store, lost replies, a pause, a slow link and a cut
)


@pytest.mark.one_store
async def test_a_deployment_that_is_broken_at_random_keeps_its_promises(tmp_path):
    verdict = await run(SLICE_SEED, SLICE_S, tmp_path)

    assert verdict.holds, verdict.report()
    assert verdict.faults
    assert verdict.operations["send"][Outcome.OK] > 0
