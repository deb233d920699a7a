"""Mirrors through the Python SDK."""

import pytest

from millstream_client import AlreadyExists, AsyncMillstream, Millstream, NotFound

URL = "https://eu.example.com"


def test_mirror_is_created_compared_replaced_paused_and_deleted(millstream: Millstream, name: str):
    mirror = millstream.mirror(name)

    made, again = mirror.create(URL, ["eu.*"], key="k"), mirror.create(URL, ["eu.*"])
    with pytest.raises(AlreadyExists):
        mirror.create(URL, ["us.*"])
    changed = mirror.apply(URL, ["us.*"], groups=False, follow_definitions=True)

    assert (made.created, again.created) == (True, False)
    assert {one.pointer for one in changed.changes} == {
        "/streams",
        "/groups",
        "/follow_definitions",
    }
    assert (mirror.pause().paused, mirror.resume().paused) == (True, False)
    assert (mirror.stats().shards, mirror.stats().groups) == ([], [])
    assert [one.name for one in millstream.mirrors(prefix=name)] == [name]
    assert mirror.promote().promoted_at is not None
    mirror.delete()
    with pytest.raises(NotFound):
        mirror.config()


async def test_asynchronous_client_lists_mirrors(service_url: str, name: str):
    async with AsyncMillstream(service_url) as client:
        await client.mirror(name).create(URL, ["eu.*"])
        names = [one.name async for one in client.mirrors(prefix=name)]
        await client.mirror(name).delete()

    assert names == [name]
