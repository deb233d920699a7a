"""`millstream process` and `socket`."""

import pytest

from tests.cli_commands import CommandResult, millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


def test_processes_and_sockets_are_listed_and_socket_is_closed(show_socket):
    show_socket("5b1f9c22e07a4d36")

    processes = millstream("process", "ls", "-o", "json").json
    sockets = millstream("socket", "ls", "-o", "json").json
    closed = millstream("socket", "close", "5b1f9c22e07a4d36")
    missing = millstream("socket", "close", "nothing")

    assert {"api"} == {one["role"] for one in processes}
    assert [one["principal"] for one in sockets if one["process"] == "walked"] == ["shop"]
    assert closed == CommandResult(0, "Closing socket 5b1f9c22e07a4d36.\n", "")
    assert missing.code == 3
