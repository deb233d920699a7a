"""A whole run: a deployment, clients, faults, recovery, drain, verdict.

python -m tests.chaos.run --minutes 5 --seed 1
"""

import argparse
import asyncio
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import msgspec

from tests.chaos.checker import Finding, check
from tests.chaos.history import History, Outcome
from tests.chaos.nemesis import Nemesis, schedule
from tests.chaos.site import running_site
from tests.chaos.workload import Workload

RECOVERED_S = 30.0
"""Everything goes well again so soon after the last fault: a supervisor waits at most 10 s, a store's answer 5 s."""
SEED_MAX = 1_000_000


class Verdict(msgspec.Struct, frozen=True):
    """What a run was, and what it showed."""

    seed: int
    seconds: float
    operations: dict[str, dict[str, int]]
    faults: dict[str, int]
    links: dict[str, int]
    recovered_s: float | None
    findings: list[Finding]
    missing: list[str]
    timeline: list[str]

    @property
    def holds(self) -> bool:
        """Whether every invariant was checked and holds, and the service came back whole."""
        whole = self.recovered_s is not None and not self.missing
        return whole and all(finding.holds for finding in self.findings)

    def report(self) -> str:
        """The whole of it in words."""
        total = sum(sum(ways.values()) for ways in self.operations.values())
        back = "NOT" if self.recovered_s is None else f"in {self.recovered_s:.1f} s"
        lines = [
            f"seed {self.seed}, {self.seconds:.0f} s of faults, {total} operations",
            "",
            f"{'operations':<20}" + "".join(f"{way.value:>9}" for way in Outcome),
            *(
                f"  {kind:<18}" + "".join(f"{ways[way.value]:>9}" for way in Outcome)
                for kind, ways in sorted(self.operations.items())
            ),
            "",
            "faults: " + ", ".join(f"{name} {n}" for name, n in sorted(self.faults.items())),
            "links:  " + ", ".join(f"{name} {n}" for name, n in sorted(self.links.items())),
            f"back to work after the last fault: {back} (bound {RECOVERED_S:.0f} s)",
            *([f"programs that do not run: {', '.join(self.missing)}"] if self.missing else []),
            "",
            f"{'invariant':<58}{'checked':>9}",
            *(finding.line() for finding in self.findings),
            "",
            "HOLDS" if self.holds else "DOES NOT HOLD",
        ]
        return "\n".join(lines)


async def run(seed: int, seconds: float, place: Path) -> Verdict:
    """Faults for that long, in that directory; the history stays there, and the log of the deployment."""
    history = History()
    async with running_site(place, seed) as site, Workload(site.url, history, seed) as workload:
        nemesis = Nemesis(site, history)
        await workload.start()
        await nemesis.run(schedule(seed, seconds))
        recovered_s = await workload.recovered(RECOVERED_S)
        missing = await site.missing(RECOVERED_S)
        try:
            await workload.stop()
            await workload.drain()
        finally:
            history.write(place / "history.ndjson")
        links = site.valkey_proxy.counted + site.postgres_proxy.counted
        return Verdict(
            seed=seed,
            seconds=seconds,
            operations=history.counts(),
            faults=dict(nemesis.done),
            links=dict(links),
            recovered_s=recovered_s,
            findings=check(history.operations),
            missing=missing,
            timeline=nemesis.told,
        )


def main() -> int:
    words = argparse.ArgumentParser(
        description="Break a deployment at random and check what it promised."
    )
    words.add_argument("--minutes", type=float, default=5.0)
    words.add_argument("--seed", type=int, default=None)
    told = words.parse_args()
    seed = SystemRandom().randrange(SEED_MAX) if told.seed is None else told.seed
    place = Path(tempfile.mkdtemp(prefix="millstream-chaos-"))
    place.chmod(0o755)  # Postgres may have to run as somebody else
    sys.stdout.write(f"seed {seed}, in {place}\n")
    verdict = asyncio.run(run(seed, told.minutes * 60, place))
    sys.stdout.write("\n".join([*verdict.timeline, "", verdict.report(), ""]))
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
