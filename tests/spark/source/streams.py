"""Access to a stream over HTTP, for tests of the data source."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from storage.bootstrap import open_storage
from storage.domain.names import StreamName
from storage.parquet.paths import STAGED_FOLDER
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream


@dataclass(frozen=True)
class Stream:
    """A stream of the service."""

    http: httpx.Client
    url: str
    name: str

    @classmethod
    def made(cls, http: httpx.Client, url: str, name: str, **spec: Any) -> "Stream":
        """Create a stream."""
        http.put(f"/v1/streams/{name}", json=spec).raise_for_status()
        return cls(http, url, name)

    @property
    def options(self) -> dict[str, str]:
        """Options with which a program reaches the stream."""
        return {"url": self.url, "stream": self.name}

    def put(self, numbers: Iterable[int], keys: int = 7, **more: Any) -> None:
        """Append numbered records, with rotating keys."""
        records = [{"data": str(number), "key": f"k{number % keys}", **more} for number in numbers]
        for first in range(0, len(records), 1000):
            told = self.http.post(
                f"/v1/streams/{self.name}/records", json={"records": records[first : first + 1000]}
            ).raise_for_status()
            assert told.json()["failed"] == 0

    def reshard(self, **change: Any) -> None:
        self.http.post(f"/v1/streams/{self.name}/reshard", json=change).raise_for_status()

    @property
    def shards(self) -> list[Mapping[str, Any]]:
        shards: list[Mapping[str, Any]] = self.http.get(f"/v1/streams/{self.name}/shards").json()[
            "items"
        ]
        return shards

    @property
    def extents(self) -> dict[int, tuple[int, int]]:
        """The oldest and the next offset of each shard."""
        return {shard["index"]: (shard["start"], shard["next"]) for shard in self.shards}

    def records(self) -> list[Mapping[str, Any]]:
        """Read all records, children after parents."""
        found: list[Mapping[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            body = self.http.get(f"/v1/streams/{self.name}/records", params=cursor).json()
            assert not body["gaps"]
            if not body["records"]:
                return found
            found += body["records"]
            cursor = {"cursor": body["next_cursor"]}

    def numbers(self) -> list[int]:
        """The numbers in the stream, in shard order."""
        return [int(record["data"]) for record in self.records()]

    def by_key(self) -> dict[str, list[int]]:
        """The numbers of each key, in order."""
        found: dict[str, list[int]] = defaultdict(list)
        for record in self.records():
            found[record["key"]].append(int(record["data"]))
        return dict(found)

    def staging(self, settings: StorageSettings) -> Path:
        """The folder of staged records for the stream."""
        assert settings.archive_url is not None
        root = Path(settings.archive_url.removeprefix("file://"))
        return root / STAGED_FOLDER / "default" / asyncio.run(self._id(settings))

    def staged(self, settings: StorageSettings) -> list[Path]:
        """Staged files of this stream; other streams may have leftovers of orphaned tasks."""
        return [one for one in self.staging(settings).rglob("*") if one.is_file()]

    async def _id(self, settings: StorageSettings) -> str:
        async with open_storage(settings) as storage:
            return (await storage.catalog.stream(StreamName(self.name))).stream_id

    def archive_stream(self, settings: StorageSettings) -> None:
        """Move all records to the archive."""
        asyncio.run(self.to_archive(settings))

    async def to_archive(self, settings: StorageSettings) -> None:
        """Move all records to the archive (async)."""
        name = StreamName(self.name)
        async with open_storage(settings) as storage:
            await archive_stream(storage, settings, name)
            await asyncio.sleep(
                0.002
            )  # records that arrived in this millisecond are not older than it
            while await storage.streams.trim(name, 1_000):
                pass
