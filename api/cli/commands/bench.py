"""`millstream bench`: how long users of a service would wait, at a rate of calls."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.bench.options import Over, Protocol, What
from api.cli.errors import CliError, ExitCode
from api.cli.shell.options import duration
from api.cli.shell.output import Row
from api.cli.shell.terminal import Terminal, noun, verb

if TYPE_CHECKING:
    from api.cli.bench.loads import Load

bench = noun("Measure a service.")


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
    what: Annotated[What, typer.Argument(help="What to measure.")],
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Calls per second.")] = 100.0,
    seconds: Annotated[Any, duration("--for", help="How long is measured.")] = 10.0,
    warm_up: Annotated[
        Any, duration("--warm-up", help="How long calls are made before that, and not measured.")
    ] = 2.0,
    size: Annotated[
        int, typer.Option("--size", min=16, help="Bytes of a message or record.")
    ] = 256,
    batch: Annotated[
        int, typer.Option("--batch", min=1, help="Messages or records in a call.")
    ] = 1,
    clients: Annotated[
        int, typer.Option("--clients", min=1, help="Calls under way at a time, at most.")
    ] = 64,
    protocol: Annotated[
        Protocol, typer.Option("--protocol", help="For send, put and end-to-end: the encoding.")
    ] = Protocol.MSGPACK,
    over: Annotated[
        Over, typer.Option("--over", help="For end-to-end: how messages are received.")
    ] = Over.POLL,
    compare: Annotated[
        Path | None, typer.Option("--compare", help="An earlier result (-o json) to compare with.")
    ] = None,
) -> None:
    """Measure any service with calls at a fixed rate, and show what their users would have waited.

    Calls begin when they are due, and their time counts from then: a service that stalls is seen by all who came
    meanwhile. It works on a queue or stream of its own, which is gone afterwards.
    """
    from api.cli.bench.loads import Load
    from api.cli.bench.report import differences, read_result
    from api.cli.bench.schedule import Pace

    before = read_result(compare) if compare else None
    pace = Pace(rate, seconds, warm_up, clients)
    load = Load(what, pace, size, batch, protocol, over)
    told = _run(cli, load)
    if before is None:
        cli.out.show(told, latency_ms=None, asked=None, machine=None)
    else:
        for difference in differences(before, told):
            cli.say(f"Not alike: {difference}.")
        _show_both(cli, before, told)
    if told["failed"]:
        raise CliError(f"{told['failed']} failed: {told['failures']}", ExitCode.PARTIAL)


def _run(cli: Terminal, load: "Load") -> Row:
    from api.cli.bench.loads import run_load
    from api.cli.bench.report import result
    from api.cli.bench.schedule import LoopClock

    target = cli.target
    lasts = load.pace.warm_up_s + load.pace.seconds
    cli.say(f"{load.pace.calls} calls of {load.what} to {target.url.value}, for {lasts:g} s")
    tally = asyncio.run(run_load(target.url.value, target.api_key.value, load, LoopClock()))
    return result(load, tally, target.url.value)


def _show_both(cli: Terminal, before: Row, told: Row) -> None:
    from api.cli.bench.report import COMPARED, comparison

    if cli.out.for_people:
        cli.out.rows(comparison(before, told), COMPARED)
    else:
        cli.out.show({**told, "comparison": comparison(before, told)})
