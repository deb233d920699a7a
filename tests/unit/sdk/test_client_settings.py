"""Credentials of the SDK client."""

from millstream_client.retries import Retries
from millstream_client.settings import read_options


def test_api_key_is_sent_and_not_shown_in_repr(monkeypatch):
    monkeypatch.setenv("MILLSTREAM_API_KEY", "from-the-environment")

    options = read_options(None, "msk_x", 1.0, Retries())
    unsaid = read_options(None, None, 1.0, Retries())
    nobody = read_options(None, "", 1.0, Retries())

    assert options.headers["authorization"] == "Bearer msk_x"
    assert unsaid.headers["authorization"] == "Bearer from-the-environment"
    assert "authorization" not in nobody.headers
    assert "msk_x" not in repr(options)


def test_token_function_is_called_for_each_request():
    tokens = iter(["one", "two"])

    options = read_options(None, lambda: next(tokens), 1.0, Retries())

    assert options.headers["authorization"] == "Bearer one"
    assert options.headers["authorization"] == "Bearer two"
