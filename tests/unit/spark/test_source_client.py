"""HTTP client of the Spark source, and its imports."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_millstream import client as talking
from pyspark_millstream.client import Client
from pyspark_millstream.errors import DataLost, MillstreamError
from pyspark_millstream.options import Options, read_options
from pyspark_millstream.ranges import Extents, Span
from storage.parquet.record_schema import RECORD_SCHEMA

STREAM_ID = "0c5ad1f7d2b94e63"
SHARDS = b'{"stream_id": "0c5ad1f7d2b94e63", "items": []}'


class Service:
    """Return the scripted answers, and record requests and connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                service.connections += 1
                super().setup()

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                asked = {name.lower(): word for name, word in self.headers.items()}
                service.asked.append((self.command, self.path, asked))
                status, headers, body = service.answers.pop(0)
                self.send_response(status)
                for name, word in {**headers, "content-length": str(len(body))}.items():
                    self.send_header(name, word)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def will_answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        told = {name.replace("_", "-"): word for name, word in headers.items()}
        self.answers.append((status, told, body))


@pytest.fixture
def service() -> Iterator[Service]:
    actual_service = Service()
    yield actual_service
    actual_service.close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(talking, "_WAIT_S", 0.0)


def client(service: Service, **options: str) -> Client:
    return Client(read_options({"url": service.url, "stream": "clicks", **options}))


def table(offsets: list[int]) -> bytes:
    columns = {"offset": offsets, "ts": [0] * len(offsets), "data": [b"x"] * len(offsets)}
    arrays = [
        pa.array(columns.get(field.name, [None] * len(offsets)), field.type)
        for field in RECORD_SCHEMA
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, RECORD_SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA))
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def offsets_of(found: Client, span: Span) -> list[int]:
    return [at for batch in found.read(span) for at in batch.column("offset").to_pylist()]


def test_api_key_is_sent_as_bearer_token(service):
    service.will_answer(200, SHARDS)

    talking_to = client(service, apiKey="secret")
    talking_to.extents()

    [(method, path, headers)] = service.asked
    assert (method, path) == ("GET", "/v1/streams/clicks/shards")
    assert headers["authorization"] == "Bearer secret"


def test_api_key_of_environment_is_sent(service, monkeypatch):
    monkeypatch.setenv("MILLSTREAM_API_KEY", "of the environment")
    service.will_answer(200, SHARDS)

    talking_to = client(service)
    talking_to.extents()

    assert service.asked[0][2]["authorization"] == "Bearer of the environment"


def test_temporary_failure_is_retried(service):
    for status in (503, 429, 504):
        service.will_answer(status, b"{}")
    service.will_answer(200, SHARDS)

    talking_to = client(service)
    assert talking_to.extents() == Extents(STREAM_ID, [])

    assert len(service.asked) == 4


def test_refusal_is_reported_in_one_line_and_not_retried(service):
    service.will_answer(403, b'{"detail": "This key may not read it.", "code": "forbidden"}')

    with pytest.raises(MillstreamError, match=r"^This key may not read it. \(forbidden\)$"):
        client(service).extents()

    assert len(service.asked) == 1


def test_response_without_problem_is_reported_by_status(service):
    service.will_answer(418, b"<html>")

    with pytest.raises(MillstreamError, match="status 418"):
        client(service).extents()


def test_unreachable_service_is_named():
    options = read_options({"url": "http://127.0.0.1:1", "stream": "clicks"})

    with pytest.raises(MillstreamError, match=r"^http://127.0.0.1:1 is unreachable"):
        Client(options).extents()


def test_span_is_read_in_parts(service):
    service.will_answer(200, table([3, 4]), millstream_next_offset="5")
    service.will_answer(200, table([7]), millstream_next_offset="8", millstream_gap="5-7 hole")

    assert offsets_of(client(service), Span(2, 3, 8)) == [3, 4, 7]
    assert [path.split("clicks")[1] for _, path, _ in service.asked] == [
        "/shards/2/table?offset=3&end=8",
        "/shards/2/table?offset=5&end=8",
    ]


def test_span_names_its_stream(service):
    service.will_answer(200, table([3]), millstream_next_offset="4")

    assert offsets_of(client(service), Span(0, 3, 4, STREAM_ID)) == [3]
    assert service.asked[0][1].endswith(f"/table?offset=3&end=4&stream_id={STREAM_ID}")


def http_client(url: str, api_key: str | None = None) -> httpx.Client:
    return Client(Options(url=url, stream="clicks", api_key=api_key))._http


def test_http_client_is_reused_and_keeps_its_connection(service):
    """Each call built a TLS context, which takes 40 ms of processor time."""
    for _ in range(3):
        service.will_answer(200, SHARDS)

    for _ in range(3):
        client(service).extents()

    assert client(service)._http is client(service)._http
    assert service.connections == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "x", "y"])), max_size=30))
def test_http_client_is_one_per_url_and_key(uses):
    talking._http_client.cache_clear()
    clients = [(use, http_client(f"http://{use[0]}", use[1])) for use in uses]
    last = dict(clients)

    for (host, api_key), http in clients:
        assert (http.base_url.host, http.headers.get("authorization")) == (
            host,
            f"Bearer {api_key}" if api_key else None,
        )
        if len(last) <= talking._CLIENTS:
            assert http is last[host, api_key]
    assert talking._http_client.cache_info().currsize <= talking._CLIENTS


def test_http_client_is_closed_when_evicted_and_unused(service):
    for _ in range(2):
        service.will_answer(200, SHARDS)
    reader = client(service)
    reader.extents()
    pool = talking_pool(reader)
    for number in range(talking._CLIENTS):
        http_client(f"http://other-{number}")

    assert client(service)._http is not reader._http
    assert reader.extents() == Extents(STREAM_ID, [])
    assert len(pool.connections) == 1
    del reader
    assert pool.connections == []


def talking_pool(client: Client) -> Any:
    transport: Any = client._http._transport
    return transport._pool


def test_forked_process_uses_and_closes_its_own_http_client(service, monkeypatch):
    service.will_answer(200, SHARDS)
    client(service).extents()
    process_id = os.getpid()
    http = talking._HttpClient(process_id, service.url, None)

    monkeypatch.setattr(os, "getpid", lambda: process_id + 1)
    forked = client(service)._http
    http.__del__()

    monkeypatch.undo()
    assert forked is not client(service)._http
    assert not http.is_closed


def test_threads_share_http_client(service):
    for _ in range(40):
        service.will_answer(200, SHARDS)
    client(service)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: client(service).extents(), range(40)))

    assert answers == [Extents(STREAM_ID, [])] * 40
    assert service.connections <= 4


@pytest.mark.parametrize(("url", "trusts"), [("http://one", False), ("https://two", True)])
def test_certificate_authorities_are_read_for_https(url, trusts):
    pool = talking_pool(Client(read_options({"url": url, "stream": "clicks"})))

    assert bool(pool._ssl_context.cert_store_stats()["x509_ca"]) == trusts


@pytest.mark.parametrize(
    ("status", "body", "headers", "lost"),
    [
        (410, b'{"earliest_offset": 6}', {}, "from 3 to 5"),
        (410, b'{"code": "stream_recreated"}', {}, "from 3 to 7"),
        (416, b'{"next_offset": 2}', {}, "from 3 to 7"),
        (200, table([]), {"millstream_next_offset": "3"}, "from 3 to 7"),
        (
            200,
            table([5]),
            {"millstream_next_offset": "6", "millstream_gap": "3-5 expired"},
            "from 3 to 4",
        ),
    ],
)
def test_missing_records_are_an_error_or_skipped(service, status, body, headers, lost):
    service.will_answer(status, body, **headers)
    with pytest.raises(
        DataLost, match=f"shard 0 of stream 'clicks' no longer has the records {lost}"
    ):
        offsets_of(client(service), Span(0, 3, 8))

    service.will_answer(status, body, **headers)
    service.will_answer(200, table([6, 7]), millstream_next_offset="8")
    offsets = offsets_of(client(service, failOnDataLoss="false"), Span(0, 3, 8))

    assert offsets in ([6, 7], [5, 6, 7], [])


def test_commit_is_repeated_until_done(service):
    service.will_answer(200, b'{"done": false, "records": 5, "staged": ["a"]}')
    service.will_answer(200, b'{"done": true, "records": 9, "staged": ["a"]}')

    talking_to = client(service)
    assert talking_to.commit("loader", 3, ["a"]) == 9


# Imports


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_package_imports_nothing_of_the_service():
    done = python(
        "import sys, pyspark_millstream;"
        "print({name.partition('.')[0] for name in sys.modules}"
        " & {'api', 'storage', 'consumers', 'spark_worker', 'msgspec', 'redis', 'sqlalchemy'})"
    )

    assert done.stdout.strip() == "set()", done.stderr


def test_source_is_created_without_client_and_arrow():
    """Spark starts a process to look a source up, and another one to create it."""
    done = python(
        "import sys; from pyspark_millstream import DefaultSource;"
        "DefaultSource({}).schema();"
        "print(sys.modules.keys() & {'httpx', 'pyarrow', 'numpy', 'pandas'})"
    )

    assert done.stdout.strip() == "set()", done.stderr


def test_records_are_converted_without_pandas():
    """Arrow loads it where it is installed: a third of a second of each process of a query."""
    done = python(
        "import sys; from pyspark_millstream.arrow_batches import as_records, as_written;"
        "from storage.parquet.record_schema import RECORD_SCHEMA;"
        "import pyarrow as pa;"
        "empty = pa.RecordBatch.from_arrays("
        "  [pa.nulls(2, field.type) for field in RECORD_SCHEMA], schema=RECORD_SCHEMA.remove_metadata());"
        "[records] = as_records(3, iter([empty]));"
        "data = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bytes(8)), pa.py_buffer(b'')]);"
        "as_written(pa.RecordBatch.from_arrays([data], ['data']));"
        "print(records.column('shard').to_pylist(), 'pandas' in sys.modules)"
    )

    assert done.stdout.strip() == "[3, 3] False", done.stderr


def test_import_without_pyspark_explains_what_is_missing():
    done = python("import sys; sys.modules['pyspark'] = None; import pyspark_millstream")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: pyspark_millstream needs PySpark 4.3: "
        "pip install '.[spark]' in a clone of Millstream"
    )
