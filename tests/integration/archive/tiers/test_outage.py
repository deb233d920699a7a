"""Hot reads do not query Postgres, and continue during its outage."""

import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.streams.stream import ReadFrom
from storage.postgres.repositories.manifest_reads import ManifestRows
from tests.integration.archive.tiers.tier_reads import offsets, read
from tests.tiered_stream import CLICKS, append, move_to_archive

pytestmark = pytest.mark.one_store


async def test_hot_reads_continue_during_postgres_outage(engines, settings, clock, monkeypatch):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)
    known = await read(engines, ReadFrom(offset=12))
    async with open_storage(settings, clock=clock) as other:
        await other.catalog.stream(CLICKS)

        async def away(*_):
            raise StorageUnavailable("away")

        for name in ("extents", "files_from", "file_since"):
            monkeypatch.setattr(ManifestRows, name, away)
        clock.advance(ms=10 * limits.ARCHIVE_EXTENT_MS)

        unknown = await read(other, ReadFrom(offset=12))
        with pytest.raises(StorageUnavailable):
            await read(other, ReadFrom(offset=3))

    assert (known.start, offsets(known)) == (0, [12, 13, 14])
    assert (unknown.start, offsets(unknown)) == (10, [12, 13, 14])
    assert (await read(engines, ReadFrom(offset=12))).start == 0


async def test_hot_read_sends_no_postgres_query(engines, settings, monkeypatch):
    await append(engines, 10)
    reads = []

    async def note(self, stream_id):
        reads.append(stream_id)
        return {}

    monkeypatch.setattr(ManifestRows, "extents", note)

    await read(engines, ReadFrom(offset=0))
    await read(engines, ReadFrom(tail=100))
    await read(engines, ReadFrom(time_ms=0))

    assert reads == []
