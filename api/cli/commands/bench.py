"""`millstream bench`: latency of a service at a fixed rate of calls."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.bench.options import BenchOperation, Over, Protocol
from api.cli.errors import CliError, ExitCode
from api.cli.shell.options import duration, option
from api.cli.shell.output import Row
from api.cli.shell.terminal import Terminal, noun, verb

if TYPE_CHECKING:
    from api.cli.bench.loads import BenchLoad

bench = noun()


@verb(
    bench,
    "bench",
    examples=[
        "millstream bench send --rate 50 --for 1s --warm-up 0s",
        "millstream bench end-to-end --over websocket --rate 20 --for 1s --warm-up 0s -o json > before.json",
        "millstream bench end-to-end --over websocket --rate 20 --for 1s --warm-up 0s --compare before.json",
    ],
)
def measure(
    cli: Terminal,
    what: Annotated[BenchOperation, typer.Argument(help="Operation to measure.")],
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Calls per second.")] = 100.0,
    seconds: Annotated[Any, duration("--for", help="Duration of the measurement.")] = 10.0,
    warm_up: Annotated[
        Any, duration("--warm-up", help="Duration of the warm-up, which is not measured.")
    ] = 2.0,
    size: Annotated[
        int, typer.Option("--size", min=16, help="Size of a message or record, in bytes.")
    ] = 256,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Batch size.")] = 1,
    clients: Annotated[
        int, typer.Option("--clients", min=1, help="Maximum number of concurrent calls.")
    ] = 64,
    protocol: Annotated[
        Protocol, option("--protocol", "Encoding for send, put and end-to-end.")
    ] = Protocol.MSGPACK,
    over: Annotated[Over, option("--over", "Transport for receiving, for end-to-end.")] = Over.POLL,
    compare: Annotated[
        Path | None, option("--compare", "Earlier result (-o json) to compare with.")
    ] = None,
) -> None:
    """Measure latency at a fixed rate of calls.

    Latency counts from the time a call is due, so that a stall of the service shows in all calls due during it. The bench
    uses a queue or stream of its own, which it deletes afterwards.
    """
    from api.cli.bench.loads import BenchLoad
    from api.cli.bench.report import differences, read_result
    from api.cli.bench.schedule import BenchSchedule

    before = read_result(compare) if compare else None
    pace = BenchSchedule(rate, seconds, warm_up, clients)
    load = BenchLoad(what, pace, size, batch, protocol, over)
    result = _run(cli, load)
    if before is None:
        cli.out.show(result, latency_ms=None, asked=None, machine=None)
    else:
        for difference in differences(before, result):
            cli.print_notice(f"The runs differ: {difference}.")
        _show_both(cli, before, result)
    if result["failed"]:
        raise CliError(f"{result['failed']} failed: {result['failures']}", ExitCode.PARTIAL)


def _run(cli: Terminal, load: "BenchLoad") -> Row:
    import asyncio

    from api.cli.bench.loads import run_load
    from api.cli.bench.report import result
    from api.cli.bench.schedule import LoopClock

    target = cli.target
    lasts = load.pace.warm_up_s + load.pace.seconds
    cli.print_notice(
        f"{load.pace.calls} calls of {load.what} to {target.url.value}, for {lasts:g} s"
    )
    tally = asyncio.run(run_load(target.url.value, target.api_key.value, load, LoopClock()))
    return result(load, tally, target.url.value)


def _show_both(cli: Terminal, before: Row, result: Row) -> None:
    from api.cli.bench.report import COMPARED, comparison

    if cli.out.for_people:
        cli.out.rows(comparison(before, result), COMPARED)
    else:
        cli.out.show({**result, "comparison": comparison(before, result)})
