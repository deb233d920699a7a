"""A URL that answers but is not Millstream is named as such, whatever it answers."""

import pickle

import httpx
import pytest

from api.cli.shell.error_messages import cli_error_from
from millstream_client.core.api.groups.get_consumer_group import get_consumer_group
from millstream_client.core.api.queues.get_queue_stats import get_queue_stats
from millstream_client.core.api.queues.list_queues import list_queues
from millstream_client.errors import NotFound, NotMillstream, Refused, Unavailable
from millstream_client.retries import Retries
from millstream_client.settings import Options
from millstream_client.sync.transport import Transport

URL = "http://127.0.0.1:9"
CALLS = [list_queues(), get_queue_stats("orders"), get_consumer_group("readers")]
FOREIGN = {
    "a page": (200, "text/html", b"<html>It works!</html>"),
    "an empty answer": (200, "", b""),
    "a text": (200, "text/plain", b"pong"),
    "another API's object": (200, "application/json", b'{"status": "ok"}'),
    "another API's list": (200, "application/json", b"[]"),
    "a number": (200, "application/json", b"7"),
    "a page that is missing": (404, "text/html; charset=utf-8", b"<html>Not Found</html>"),
    "a page that is forbidden": (403, "text/html", b"<html>Forbidden</html>"),
}


def transport(status: int, content_type: str, content: bytes) -> Transport:
    headers = {"content-type": content_type} if content_type else {}
    answer = httpx.MockTransport(lambda _: httpx.Response(status, headers=headers, content=content))
    return Transport(
        Options(url=URL, api_key="", retries=Retries(0)), httpx.Client(transport=answer)
    )


@pytest.mark.parametrize("answer", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.operation)
def test_foreign_answer_is_named(call, answer):
    """The SDK raised a decoder's error, and the command line showed a traceback."""
    status, content_type, _ = answer

    with pytest.raises(NotMillstream) as raised:
        transport(*answer).call(call)

    told = f"HTTP {status}, {content_type.partition(';')[0] or 'no content type'}"
    assert str(raised.value) == f"{URL} answers, but it is not Millstream ({told})"
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert "--url" in str(cli_error_from(raised.value))


@pytest.mark.parametrize(
    ("status", "content_type", "content", "expected"),
    [
        (404, "application/problem+json", b'{"code": "queue_not_found"}', NotFound),
        (503, "text/html", b"<html>Service Unavailable</html>", Unavailable),
        (502, "text/html", b"<html>Bad Gateway</html>", Refused),
    ],
)
def test_problem_or_outage_of_proxy_is_not_foreign(status, content_type, content, expected):
    with pytest.raises(expected):
        transport(status, content_type, content).call(list_queues())


def test_own_connections_ask_for_plain_answers():
    """Compression costs more processor time than a network nearby takes."""
    own = Transport(Options(url=URL, api_key=""))

    assert own._http.headers["accept-encoding"] == "identity"
