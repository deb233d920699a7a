"""HTTP calls that the tests of streams share."""

from typing import Any

import httpx


def append(client: httpx.Client, stream: str, *records: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{stream}/records", json={"records": list(records)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["records"]
    return results


def append_to_shard(
    client: httpx.Client, stream: str, shard: int, *records: Any, **conditions: Any
) -> httpx.Response:
    return client.post(
        f"{stream}/shards/{shard}/records", json={"records": list(records), **conditions}
    )


def read_shard(client: httpx.Client, stream: str, shard: int, **asked: Any) -> dict[str, Any]:
    answer = client.get(f"{stream}/shards/{shard}/records", params=asked)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def reshard(client: httpx.Client, stream: str, **change: Any) -> httpx.Response:
    return client.post(f"{stream}/reshard", json=change)
