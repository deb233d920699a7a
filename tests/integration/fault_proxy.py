"""Proxy that delays the responses of a store, or cuts its connections before or after them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_POSTGRES_SOCKET = ".s.PGSQL.5432"


class FaultSwitches:
    """Switches of the proxy: delay or drop responses, or cut every connection."""

    def __init__(self) -> None:
        self.swallow_answers = False
        self.refuse = False
        self.delay_s = 0.0
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.close()

    async def serve(
        self, near: tuple[asyncio.StreamReader, asyncio.StreamWriter], store: Path
    ) -> None:
        if self.refuse:
            near[1].close()
            return
        far = await asyncio.open_unix_connection(str(store))
        self._writers |= {near[1], far[1]}
        try:
            await asyncio.gather(
                self._copy(near[0], far[1], False), self._copy(far[0], near[1], True)
            )
        finally:
            for writer in (near[1], far[1]):
                self._writers.discard(writer)
                writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: bool
    ) -> None:
        while data := await reader.read(65_536):
            if answers and self.swallow_answers:
                continue
            if answers and self.delay_s:
                await asyncio.sleep(self.delay_s)
            writer.write(data)
        writer.close()


@asynccontextmanager
async def running_fault_proxy(url: str, folder: Path) -> AsyncGenerator[tuple[str, FaultSwitches]]:
    """Run a proxy in front of the hot store of `url`; yields its URL and its switches."""
    near = folder / "proxy.sock"
    async with _proxy(Path(urlsplit(url).path), near) as faults:
        yield f"unix://{near}?db=0", faults


@asynccontextmanager
async def running_database_proxy(
    url: str, folder: Path
) -> AsyncGenerator[tuple[str, FaultSwitches]]:
    """Run a proxy in front of the database of `url`; yields its URL and its switches."""
    [store] = parse_qs(urlsplit(url).query)["host"]
    async with _proxy(Path(store) / _POSTGRES_SOCKET, folder / _POSTGRES_SOCKET) as faults:
        yield urlsplit(url)._replace(query=f"host={folder}").geturl(), faults


@asynccontextmanager
async def _proxy(store: Path, near: Path) -> AsyncGenerator[FaultSwitches]:
    faults = FaultSwitches()
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await faults.serve((reader, writer), store)
        except (OSError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_unix_server(accept, str(near))
    try:
        yield faults
    finally:
        server.close()
        faults.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
