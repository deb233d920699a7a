"""A view of a test, its stream, and what is appended and read."""

import pytest

SQL = "select page, count(*) as clicks from c group by page"
OTHER_SQL = "select site, count(*) as clicks from c group by site"


@pytest.fixture
def stream(client, name):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    return name


@pytest.fixture
def fields(stream):
    return {"sql": SQL, "from": {"c": {"stream": stream, "columns": "page string"}}}


@pytest.fixture
def path(client, name, stream):
    yield f"/v1/views/{name}"
    client.delete(f"/v1/views/{name}")


@pytest.fixture
def append(client, stream):
    """Append records, and return where the last one is."""

    def append(*pages):
        records = [{"data": {"page": page, "site": "a"}} for page in pages]
        body = {"records": records}
        results = client.post(f"/v1/streams/{stream}/records", json=body).json()["records"]
        return "{shard}:{offset}".format(**results[-1])

    return append


@pytest.fixture
def read(client, path):
    return lambda **query: client.get(f"{path}/rows", params=query)
