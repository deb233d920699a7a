"""A short chaos run; `make faults` runs six minutes in CI."""

import pytest

from tests.chaos.history import Outcome
from tests.chaos.run import run
from tests.chaos.tools import Tools

SLICE_S = 10.0
SLICE_SEED = 190098
SLICE_FAULTS = {
    "kill_valkey",
    "kill_postgres",
    "kill_api",
    "half_open_clients",
    "lost_reply_valkey",
    "recreate_stream",
}
"""The faults of that seed; where kinds are added, another seed has them."""
RARE = 7  # invariants that need longer than this slice to be checked, as those of pauses and full targets do


@pytest.mark.chaos
@pytest.mark.one_store
async def test_deployment_satisfies_invariants_under_faults(tmp_path):
    verdict = await run(SLICE_SEED, SLICE_S, tmp_path, Tools(), archives=False)

    assert verdict.is_sound, verdict.report()
    assert verdict.faults.keys() == SLICE_FAULTS
    assert (
        len([finding for finding in verdict.findings if finding.holds])
        >= len(verdict.findings) - RARE
    )
    assert verdict.operations["send"][Outcome.OK] > 0
