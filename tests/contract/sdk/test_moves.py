"""Operations of queues through the Python SDK that only the service has."""

from datetime import UTC, datetime, timedelta

import pytest

from millstream_client import Conflict, Queue


def test_messages_are_browsed_by_header_body_and_time(orders):
    before = datetime.now(UTC) - timedelta(minutes=1)
    orders.send({"customer": 7}, headers={"source": "web"})
    orders.send({"customer": "7"})
    orders.send({"order": 1})

    assert [one.offset for one in orders.browse(headers={"source": "web"})] == [0]
    assert [one.offset for one in orders.browse(body={"/customer": 7})] == [0]
    assert [one.offset for one in orders.browse(body={"/customer": ...})] == [0, 1]
    assert [one.offset for one in orders.browse("ready", text="order", sent_from=before)] == [2]
    assert list(orders.browse(sent_before=before)) == []
    assert list(orders.dead_letters("late", body={"/customer": 7})) == []


def test_group_is_paused_listed_and_resumed(millstream, name):
    queue = millstream.queue(name)
    queue.create(type="fifo", deduplicate_by_content=True)
    queue.send("hello", group="customer 7/8")

    queue.pause_group("customer 7/8", "disputed")
    parked = [(group.group, group.reason) for group in queue.parked_groups()]
    resumed = queue.resume_group("customer 7/8")

    assert parked == [("customer 7/8", "disputed")]
    assert resumed == 1


def test_messages_are_moved_from_dead_letter_queue(millstream, name):
    source, dead = millstream.queue(f"{name}-source"), millstream.queue(f"{name}-dead")
    dead.create()
    source.create(dead_letters={"queue": dead.name, "receives_max": 1})
    dead.send_many(["a", "b"])

    move = dead.move(destination=source.name, per_second=1)
    dead.cancel_move(move.id)

    assert [each_move.id for each_move in dead.moves()] == [move.id]
    assert str(dead.move_status(move.id).state) in {"running", "cancelling", "cancelled"}
    with pytest.raises(Conflict):
        millstream.queue(source.name).move()


def test_client_is_configured_from_environment(service_url, monkeypatch):
    from millstream_client import Millstream

    monkeypatch.setenv("MILLSTREAM_URL", service_url + "/")
    monkeypatch.setenv("MILLSTREAM_API_KEY", "secret")
    with Millstream() as client:
        assert client.ready().status == "ok"
        assert client.options.headers["authorization"] == "Bearer secret"
        assert isinstance(client.queue("orders"), Queue)
