"""Proxy that cuts the connection to a store before or after the response."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit


class FaultSwitches:
    """Switches of the proxy: drop responses, or cut every connection."""

    def __init__(self) -> None:
        self.swallow_answers = False
        self.refuse = False
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
            writer.write(data)
        writer.close()


@asynccontextmanager
async def running_fault_proxy(url: str, folder: Path) -> AsyncGenerator[tuple[str, FaultSwitches]]:
    """Run a proxy in front of the unix socket of `url`; yields its URL and its switches."""
    store, near = Path(urlsplit(url).path), folder / "proxy.sock"
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
        yield f"unix://{near}?db=0", faults
    finally:
        server.close()
        faults.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
