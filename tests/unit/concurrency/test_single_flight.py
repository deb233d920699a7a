"""Single-flight: shared calls, cancellation, errors, and closing."""

import asyncio
import gc

import pytest

from storage.concurrency.single_flight import SingleFlight


class Source:
    """Count calls and answer them when released."""

    def __init__(self) -> None:
        self.calls = 0
        self.released = asyncio.Event()
        self.error: Exception | None = None
        self.current: list[bool] = []
        self.flights = SingleFlight[str, int]()

    async def load(self) -> int:
        self.calls += 1
        number = self.calls
        await self.released.wait()
        self.current.append(self.flights.is_current("orders"))
        if self.error is not None:
            raise self.error
        return number

    def run(self, key: str = "orders") -> "asyncio.Task[int]":
        return asyncio.create_task(self.flights.run(key, self.load))


@pytest.fixture
def source() -> Source:
    return Source()


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_flight_is_shared_by_callers_of_key(source):
    callers = [source.run(), source.run(), source.run("other")]
    await turns()
    source.released.set()

    assert await asyncio.gather(*callers) == [1, 1, 2]
    assert await source.run() == 3


async def test_flight_survives_cancelled_caller(source):
    first, second = source.run(), source.run()
    await turns()
    first.cancel()
    await turns()
    source.released.set()

    assert await second == 1
    assert first.cancelled()
    assert source.calls == 1


async def test_flight_ends_when_all_callers_cancelled(source):
    """A result that nobody waits for is still a result, for instance for a cache."""
    callers = [source.run(), source.run()]
    await turns()
    for caller in callers:
        caller.cancel()
    await turns()
    assert len(source.flights) == 1

    source.released.set()
    await source.flights.finish()

    assert len(source.flights) == 0
    assert source.current == [True]


async def test_error_reaches_all_callers_and_is_not_stored(source):
    source.error = ValueError("unreadable")
    callers = [source.run(), source.run()]
    await turns()
    source.released.set()

    for caller in callers:
        with pytest.raises(ValueError, match="unreadable"):
            await caller
    source.error = None
    assert await source.run() == 2


async def test_error_without_caller_is_retrieved(source, caplog):
    """An error that nobody waits for was logged by asyncio when its task was collected."""
    source.error = ValueError("unreadable")
    caller = source.run()
    await turns()
    caller.cancel()
    source.released.set()
    await turns()
    del caller
    gc.collect()
    await turns()

    assert caplog.records == []


async def test_fresh_run_waits_for_later_flight(source):
    earlier = source.run()
    await turns()
    fresh = [asyncio.create_task(source.flights.run_fresh("orders", source.load)) for _ in range(2)]
    await turns()
    source.released.set()

    assert await earlier == 1
    assert await asyncio.gather(*fresh) == [2, 2]


async def test_discarded_flight_is_not_joined(source):
    before = source.run()
    await turns()
    source.flights.discard("orders")
    assert "orders" not in source.flights
    after = source.run()
    await turns()
    source.released.set()

    assert [await before, await after] == [1, 2]
    assert source.current == [False, True]


async def test_discard_all_starts_new_flights(source):
    before = source.run()
    await turns()
    source.flights.discard_all()
    after = source.run()
    source.released.set()

    assert [await before, await after] == [1, 2]


async def test_close_cancels_flights_and_callers(source):
    callers = [source.run(), source.run("other")]
    await turns()
    source.flights.discard("orders")

    await source.flights.close()

    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    assert len(source.flights) == 0


async def test_finish_waits_for_discarded_flights(source):
    caller = source.run()
    await turns()
    source.flights.discard("orders")
    finishing = asyncio.create_task(source.flights.finish())
    await turns()
    assert not finishing.done()

    source.released.set()
    await finishing

    assert await caller == 1
