"""`millstream store` at a service with one store."""

import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


def test_status_shows_the_store():
    for_people = millstream("store", "status")
    for_programs = millstream("-o", "json", "store", "status").json

    assert for_people.code == 0
    assert for_programs["primary"] in for_people.out
    assert "durability always: one store, no replicas" in for_people.err


@pytest.mark.parametrize(
    "words",
    [
        ["switch-over"],
        ["switch-over", "h:1"],
        ["replace", "h:1", "h:2"],
        ["add", "h:1"],
        ["remove", "h:1"],
        ["min-insync", "2"],
        ["recover", "--accept-loss", "h:1"],
    ],
)
def test_change_is_refused_without_replica_set(words):
    done = millstream("store", *words)

    assert done.code != 0
    assert "The deployment has one store and no replica set" in done.err


def test_recovery_must_accept_loss():
    done = millstream("store", "recover", "h:1")

    assert done.code == 2
    assert "Pass --accept-loss to confirm" in done.err
