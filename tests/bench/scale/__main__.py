"""`make scale` (`python -m tests.bench.scale`): measure cost against size.

Prints tables and writes JSON. With `--publish` the tables of docs/performance.md and its plots are
written, from this run or, with `--from`, from the JSON of an earlier one. Exit codes: 0 everything
was measured; 1 a curve was not; 2 a wrong option.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from tests.bench import machine
from tests.bench.ratios import Unmeasurable
from tests.bench.scale import (
    archived,
    capacity,
    depth,
    partitions,
    primaries,
    processes,
    queues,
    shards,
    waiting,
)
from tests.bench.scale.curves import Curve, as_json, described, from_json
from tests.bench.scale.publish import PAGE, publish, publish_text
from tests.bench.scale.sizes import FULL, TINY, Sizes
from tests.bench.servers import House, house

NOT_MEASURED = 1
RESULTS = Path("scale-results.json")

Part = Callable[[House, Sizes], Iterator[Curve]]

PARTS: dict[str, Part] = {
    "queues": queues.measure,
    "shards": shards.measure,
    "polls": waiting.measure_polls,
    "sockets": waiting.measure_sockets,
    "waiting": depth.measure_waiting,
    "in-flight": depth.measure_in_flight,
    "processes": processes.measure,
    "primaries": primaries.measure,
    "partitions": partitions.measure,
    "archived": archived.measure,
}


def main() -> int:
    """Measure the chosen parts, and return the exit code."""
    options = _options()
    body = json.loads(options.past.read_text()) if options.past else _measured(options)
    curves = [from_json(each_curve) for each_curve in body["curves"]]
    for curve in curves:
        sys.stdout.write(f"## {curve.title}\n\n{described(curve)}\n")
    if options.publish:
        publish(body["machine"], body["started_at"], curves)
        publish_text(capacity.TABLE, capacity.described(PAGE.read_text()))
    return NOT_MEASURED if any(curve.trouble for curve in curves) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.scale",
        description="Measure how cost grows with size.",
        epilog=f"Parts: {', '.join(PARTS)}.",
    )
    parser.add_argument(
        "--full", action="store_true", help="10 million messages, 100 million records"
    )
    parser.add_argument("--tiny", action="store_true", help="does it run at all?")
    parser.add_argument("--parts", metavar="NAME,...", help="only these")
    parser.add_argument("--json", metavar="FILE", type=Path, default=RESULTS)
    parser.add_argument("--publish", action="store_true", help="write docs/performance.md anew")
    parser.add_argument("--from", metavar="FILE", type=Path, dest="past", help="of an earlier run")
    options = parser.parse_args()
    unknown = set((options.parts or "").split(",")) - PARTS.keys() - {""}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    sizes = FULL if options.full else TINY if options.tiny else Sizes()
    chosen = [name for name in PARTS if not options.parts or name in options.parts.split(",")]
    curves: list[Curve] = []
    with tempfile.TemporaryDirectory(prefix="millstream-scale-") as folder:
        data = Path(folder)
        told: dict[str, Any] = {
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.facts(data),
            "sizes": asdict(sizes),
        }
        for name in chosen:
            curves += _of_part(data / name, name, sizes)
            told["curves"] = [as_json(curve) for curve in curves]
            options.json.write_text(
                json.dumps(told, indent=1) + "\n"
            )  # a long run may be interrupted
    _say(f"written to {options.json}")
    return told


def _of_part(data: Path, name: str, sizes: Sizes) -> list[Curve]:
    """The curves of a part, on stores of its own."""
    _say(f"measuring {name}")
    began = monotonic()
    data.mkdir()
    curves: list[Curve] = []
    try:
        with house(data) as served:
            curves.extend(PARTS[name](served, sizes))
    except (Unmeasurable, OSError) as error:
        curves.append(
            Curve(
                name=name, title=name, size="", unit="", made="", trouble=str(error) or repr(error)
            )
        )
    _say(f"  {monotonic() - began:.0f} s")
    return curves


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
