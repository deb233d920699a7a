"""`make compare` (`python -m tests.bench.compare`): the same work for several systems.

Each starts alone, works for some rounds, and ends. Exit codes: 0 always, except 2 for a wrong
option and 4 without wrk.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import machine
from tests.bench.compare.contenders import ABSENT, CONTENDERS, JVMS
from tests.bench.compare.loads import Round
from tests.bench.compare.results import Did, Standing, Subject, as_json, described, from_json
from tests.bench.load import missing_packages
from tests.bench.ratios import Unmeasurable
from tests.bench.scale.publish import publish_text, when

UNAVAILABLE = 4
RESULTS = Path("compare-results.json")
WARM_UPS_MAX, JVM_WARM_UPS_MAX = 2, 6  # rounds; compilers at run time need several
SETTLED = 0.05  # two rounds that differ by less are warm


def main() -> int:
    """Measure the chosen contenders, and return the exit code."""
    options = _options()
    if missing := missing_packages():
        _say(f"the comparison needs {' and '.join(missing)}")
        return UNAVAILABLE
    body = json.loads(options.past.read_text()) if options.past else _measured(options)
    standings = [from_json(standing) for standing in body["standings"]]
    for subject in Subject:
        own = [standing for standing in standings if standing.contender.subject is subject]
        if not own:
            continue
        text = described(own, ABSENT.get(subject, ()))
        sys.stdout.write(f"{text}\n")
        if options.publish:
            publish_text(subject, f"{text}\n*{when(body['machine'], body['started_at'])}*\n")
    return 0


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    chosen = [name for name in CONTENDERS if not options.only or name in options.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="millstream-compare-") as folder:
        data = Path(folder)
        told: dict[str, Any] = {
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.facts(data),
            "standings": [],
        }
        for name in chosen:
            standing = _standing(name, data, options.seconds, options.rounds)
            told["standings"].append(as_json(standing))
            options.json.write_text(json.dumps(told, indent=1) + "\n")
    return told


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.compare", epilog=f"Contenders: {', '.join(CONTENDERS)}."
    )
    parser.add_argument("--seconds", type=int, default=2, help="of one round of one operation")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="NAME,...", help="only these")
    parser.add_argument("--json", metavar="FILE", type=Path, default=RESULTS)
    parser.add_argument("--publish", action="store_true", help="into docs/performance.md")
    parser.add_argument("--from", metavar="FILE", type=Path, dest="past", help="of an earlier run")
    options = parser.parse_args()
    unknown = set((options.only or "").split(",")) - CONTENDERS.keys() - {""}
    if unknown:
        parser.error(f"no such contender: {', '.join(sorted(unknown))}")
    return options


def _standing(name: str, data: Path, seconds: int, rounds: int) -> Standing:
    contender, enter = CONTENDERS[name]
    _say(f"{name}")
    folder = data / name
    folder.mkdir()
    did: dict[str, list[Did]] = {}
    troubles = []
    try:
        with enter(folder) as operations:
            for operation, measure in operations.items():
                try:
                    if contender.subject is not Subject.VIEWS:  # which measure their start too
                        _warm_up(
                            measure, seconds, JVM_WARM_UPS_MAX if name in JVMS else WARM_UPS_MAX
                        )
                    did[operation] = [measure(seconds) for _ in range(rounds)]
                except Unmeasurable as error:
                    troubles.append(f"{operation}: {error}")
    except (Unmeasurable, OSError, subprocess.SubprocessError) as error:
        troubles.append(str(error))
    return Standing(contender, {**did}, "; ".join(troubles))


def _warm_up(measure: Round, seconds: int, rounds_max: int) -> None:
    """Run until two rounds differ little."""
    rate = measure(seconds).messages_s
    for _ in range(rounds_max - 1):
        before, rate = rate, measure(seconds).messages_s
        if abs(rate - before) < SETTLED * rate:
            return


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
