"""Machines of a run: dropped packets, pulled cables, and nothing left behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.chaos.network import HERE, Network, lacking_network, running_network
from tests.conditions import wait_until

SOON_S = 10.0
DROPPED_S = 0.3
LEFT = """
import signal, time
from tests.chaos.network import running_network
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
with running_network(["store"]):
    print("runs", flush=True)
    time.sleep(600)
"""

LACKING = lacking_network()

pytestmark = pytest.mark.skipif(LACKING != "", reason=LACKING)


@pytest.fixture
def network() -> Iterator[Network]:
    with running_network(["store", "other"]) as network:
        yield network


@pytest.fixture
def echo(network: Network) -> Iterator[socket.socket]:
    """A connection from here to an echo server on the machine `store`."""
    with network.machine("store").listener() as listener:
        listener.listen()
        thread = threading.Thread(target=_echo, args=[listener])
        thread.start()
        with socket.create_connection(listener.getsockname(), SOON_S) as connection:
            yield connection
        thread.join(SOON_S)


def _echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while said := connection.recv(10):
            connection.sendall(said)


def is_dropped(connection: socket.socket) -> bool:
    """Return whether a byte that is sent now gets no answer; it arrives later."""
    connection.settimeout(DROPPED_S)
    connection.sendall(b"x")
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    return False


def arrives(connection: socket.socket) -> bool:
    connection.settimeout(SOON_S)
    return connection.recv(1) == b"x"


def test_machines_reach_each_other(echo):
    assert not is_dropped(echo)


def test_parted_machines_drop_packets_until_it_ends(network, echo):
    with network.parted([HERE], ["store", "other"]):
        assert is_dropped(echo)

    assert arrives(echo)


def test_overlapping_partitions_end_with_the_last(network, echo):
    with network.parted(["store"], [HERE]):
        with network.parted([HERE, "other"], ["store"]):
            pass
        assert is_dropped(echo)

    assert arrives(echo)


def test_partition_of_others_disturbs_nobody(network, echo):
    with network.parted(["other"], ["store", HERE]):
        assert not is_dropped(echo)


def test_machine_without_cable_hears_nothing(network, echo):
    network.connect("store", is_up=False)
    assert is_dropped(echo)

    network.connect("store", is_up=True)
    assert arrives(echo)


def test_program_on_a_machine_has_its_address(network):
    machine = network.machine("store")
    command = [*machine.launcher, "ip", "-brief", "address"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert machine.address in printed
    assert network.machine("other").address not in printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_killed_run(number):
    command = [sys.executable, "-c", LEFT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"runs\n"
            device = Path(f"/sys/class/net/ms{process.pid}")
            assert device.exists()
        finally:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    wait_until(lambda: not device.exists())
