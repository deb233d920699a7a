"""Uses of the Python SDK that `mypy --strict` accepts, and mistakes that it reports. It is not run.

An `ignore` that nothing needs is an error too, so a mistake that is no longer reported fails `make lint`.
"""

from datetime import datetime

from millstream_client import AsyncMillstream, Millstream


def use(client: Millstream, yesterday: datetime) -> None:
    """Configure each noun."""
    orders = client.queue("orders")
    orders.create(type="fifo", attempts_max=3, backoff={"kind": "list", "delays_seconds": [1, 10]})
    orders.apply(dead_letters={"queue": "letters", "receives_max": 5}, dry_run=True)
    orders.change(attempts_max=None, tags={"team": "shop"})
    orders.redrive(reason="timeout", per_second=10)
    client.stream("clicks").create(shards=2, mode="on_demand", retention_seconds=None)
    client.stream("clicks").change(hot_bytes_max=1_000_000)
    client.group("billing").create("clicks", start="time", start_time=yesterday)
    github = client.source("github")
    github.create({"provider": "github", "secrets": ["s"]}, {"queue": "orders"}, dedup_seconds=60)
    client.replays.start("clicks", {"queue": "orders"}, from_={"time": yesterday})


def mistake(client: Millstream) -> None:
    """Misspell fields, and give values of other types."""
    orders = client.queue("orders")
    orders.create(attempt_max=3)  # type: ignore[call-arg]
    orders.create(type="lifo")  # type: ignore[arg-type]
    orders.create(backoff={"sort": "list"})  # type: ignore[arg-type]
    orders.apply(dead_letters={"queue": "letters"})  # type: ignore[arg-type]
    orders.change(type="fifo")  # type: ignore[call-arg]
    orders.redrive(reson="timeout")  # type: ignore[call-arg]
    client.stream("clicks").create(shard=2)  # type: ignore[call-arg]
    client.group("billing").apply("clicks", kind="sorted")  # type: ignore[arg-type]
    client.source("github").create({"provider": "hub"}, {})  # type: ignore[typeddict-item]
    client.replays.plan("clicks", {"topic": "x"})  # type: ignore[typeddict-unknown-key]


async def use_async(client: AsyncMillstream) -> None:
    """Find the same in the asynchronous client."""
    await client.queue("orders").create(type="fifo", attempts_max=3)
    await client.queue("orders").create(attempt_max=3)  # type: ignore[call-arg]
    await client.stream("clicks").apply(retention_seconds="1d")  # type: ignore[arg-type]
