"""Bit rot in the archive: a changed byte must be detected, and is restored afterwards."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from random import Random

import httpx
import pyarrow.parquet as parquet

from tests.acceptance.deployment import command
from tests.chaos.history import Kind, Outcome
from tests.chaos.stage import EVENTS, Stage

FLIPS = 3
VERIFY = ("archive", "verify", "--stream", EVENTS)
SOUND, DAMAGED = 0, 1


async def flip_bytes(archive: Path, environment: Mapping[str, str], stage: Stage) -> None:
    """Change bytes one by one in different files, and record whether each is detected."""
    chance = stage.chance("damage")
    files = _files(archive)
    paths = await _paths(stage.url)
    expected_files = [
        path for path in files if any(str(path).endswith(each_path) for each_path in paths)
    ]
    for path in chance.sample(expected_files, min(FLIPS, len(expected_files))):
        _flip(path, at := _place(path, chance))
        told = await _verified(archive, environment)
        _flip(path, at)
        _note(stage, f"byte {at} of {path.name}", told == DAMAGED)
    _note(stage, "everything put back", await _verified(archive, environment) == SOUND)


def _files(archive: Path) -> list[Path]:
    return sorted(archive.rglob("*.parquet"))


async def _paths(url: str) -> set[str]:
    """The first files of each shard in the manifest, relative to the archive's root."""
    async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as http:
        shards = (await http.get(f"/v1/archives/{EVENTS}")).raise_for_status().json()["shards"]
        pages = [
            await http.get(f"/v1/archives/{EVENTS}/files", params={"shard": one["shard"]})
            for one in shards
        ]
    return {one["path"] for page in pages for one in page.raise_for_status().json()["items"]}


def _place(path: Path, chance: Random) -> int:
    """A position in a column chunk, which is covered by the digests that readers verify."""
    with parquet.ParquetFile(path) as file:
        group = file.metadata.row_group(chance.randrange(file.metadata.num_row_groups))
        chunk = group.column(chance.randrange(group.num_columns))
        first = chunk.dictionary_page_offset or chunk.data_page_offset
        return int(first + chance.randrange(chunk.total_compressed_size))


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))


async def _verified(archive: Path, environment: Mapping[str, str]) -> int:
    """The exit code of `millstream archive verify`."""
    settings = {**environment, "MILLSTREAM_ARCHIVE_URL": archive.as_uri()}
    returned_command = await asyncio.to_thread(command, *VERIFY, environment=settings)
    return returned_command.returncode


def _note(stage: Stage, what: str, right: bool) -> None:
    told = Outcome.OK if right else Outcome.FAIL
    stage.note("damage", Kind.DAMAGE, what, outcome=told)
