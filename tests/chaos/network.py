"""Machines of a run: network namespaces joined by a bridge, which partitions separate by dropped packets.

    this process: service, clients ───────── veth ─┐
    stores, Postgres, a second controller ── veth ─┴─ bridge, in a namespace of its own

A machine that is cut off from another one has a wrong hardware address for it, so the bridge delivers its packets to nobody:
nothing is refused, and TCP retransmits. The namespaces have no names. They end with this process and with what runs in them,
so nothing is left after a crash either.
"""

import ctypes
import os
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ipaddress import IPv4Network
from itertools import combinations, product
from typing import TypeVar

Result = TypeVar("Result")

HERE = "service"
"""The machine of this process: the service and its clients."""
_NOBODY = "02:00:00:00:00:00"
_TEST_ADDRESSES = IPv4Network("198.18.0.0/15")  # RFC 2544; each run has its part of them
_PREFIX = 28
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def lacking_network() -> str:
    """Return why this machine allows no network namespaces; nothing if it does."""
    if os.geteuid() != 0:
        return "network namespaces require root"
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    try:
        with running_network(["probe"]):
            return ""
    except OSError as error:
        return f"this machine allows no network namespaces: {error}"


class Namespace:
    """Network namespace of a thread, in which it creates sockets; it ends with the last of its users."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._descriptor = self._thread.submit(_unshare).result()

    @property
    def path(self) -> str:
        """Path of the namespace, for programs."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def launcher(self) -> list[str]:
        """The words before a command that runs it in this namespace."""
        return ["nsenter", f"--net={self.path}"]

    def listener(self, address: str) -> socket.socket:
        """Return a socket bound to a free port of an address of the namespace."""
        listener = self.call(socket.socket)
        listener.bind((address, 0))
        return listener

    def call(self, function: Callable[[], Result]) -> Result:
        """Call a function in the namespace; processes that it starts are in it too, until it ends."""
        return self._thread.submit(function).result()

    def close(self) -> None:
        """Let go of it."""
        self._thread.shutdown()
        os.close(self._descriptor)


def _unshare() -> int:
    if _libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


class Machine:
    """A machine of the network. `namespace` is None for the one of this process."""

    def __init__(self, number: int, namespace: Namespace | None, subnet: IPv4Network) -> None:
        self.address = str(subnet[number])
        self.namespace = namespace
        self.hardware = f"02:00:00:00:00:{number:02x}"
        self.port = f"port{number}"
        self.device = f"ms{os.getpid()}" if namespace is None else "eth0"

    @property
    def path(self) -> str:
        """Path of its namespace."""
        return "/proc/self/ns/net" if self.namespace is None else self.namespace.path

    @property
    def launcher(self) -> list[str]:
        """The words before a command that runs it on this machine."""
        return [] if self.namespace is None else self.namespace.launcher

    def configure(self, *lines: str) -> None:
        """Run commands of `ip`. Raises OSError."""
        _configure(self.launcher, *lines)

    def listener(self) -> socket.socket:
        """Return a socket bound to a free port of this machine."""
        assert self.namespace is not None
        return self.namespace.listener(self.address)


class Network:
    """Machines by name, and the faults of their network."""

    def __init__(self, machines: dict[str, Machine], bridge: Namespace) -> None:
        self._machines = machines
        self._bridge = bridge
        self._parted: Counter[tuple[str, str]] = Counter()

    def machine(self, name: str) -> Machine:
        """Return a machine."""
        return self._machines[name]

    @contextmanager
    def parted(self, *sides: Collection[str]) -> Iterator[None]:
        """Drop the packets between machines of different sides."""
        pairs = [pair for one, other in combinations(sides, 2) for pair in product(one, other)]
        both = pairs + [(other, one) for one, other in pairs]
        self._parted.update(both)
        self._apply(both)
        try:
            yield
        finally:
            self._parted.subtract(both)
            self._apply(both)

    def _apply(self, pairs: Sequence[tuple[str, str]]) -> None:
        for name in sorted({source for source, _ in pairs}):
            targets = [target for source, target in pairs if source == name]
            self._machines[name].configure(*(self._neighbour(name, target) for target in targets))

    def _neighbour(self, source: str, target: str) -> str:
        machine = self._machines[target]
        hardware = _NOBODY if self._parted[source, target] > 0 else machine.hardware
        device = self._machines[source].device
        return f"neigh replace {machine.address} lladdr {hardware} nud permanent dev {device}"

    def connect(self, name: str, *, is_up: bool) -> None:
        """Pull a machine's cable, or plug it in."""
        port = self._machines[name].port
        _configure(self._bridge.launcher, f"link set {port} {'up' if is_up else 'down'}")

    def set_up(self) -> None:
        """Connect the machines. Raises OSError."""
        _configure(self._bridge.launcher, "link add bridge type bridge", "link set bridge up")
        for name, machine in self._machines.items():
            self._attach(machine)
            others = [other for other in self._machines if other != name]
            machine.configure(*(self._neighbour(name, other) for other in others))

    def _attach(self, machine: Machine) -> None:
        path = machine.path.replace("/self/", f"/{os.getpid()}/")
        _configure(
            self._bridge.launcher,
            f"link add {machine.port} type veth peer name {machine.device} netns {path}",
            f"link set {machine.port} master bridge",
            f"link set {machine.port} up",
        )
        machine.configure(
            f"link set {machine.device} address {machine.hardware}",
            f"link set {machine.device} up",
            f"addr add {machine.address}/{_PREFIX} dev {machine.device}",
            *(["link set lo up"] if machine.namespace else []),
        )


@contextmanager
def running_network(names: Sequence[str]) -> Iterator[Network]:
    """Run a network of these machines, and this process's own. Raises OSError."""
    first = _TEST_ADDRESSES[(os.getpid() * 2 ** (32 - _PREFIX)) % _TEST_ADDRESSES.num_addresses]
    subnet = IPv4Network((first, _PREFIX))
    bridge = Namespace("bridge")
    namespaces = {name: Namespace(name) for name in names}
    machines = {HERE: Machine(1, None, subnet)} | {
        name: Machine(number, namespace, subnet)
        for number, (name, namespace) in enumerate(namespaces.items(), start=2)
    }
    try:
        network = Network(machines, bridge)
        network.set_up()
        yield network
    finally:
        with suppress(OSError):
            machines[HERE].configure(f"link del {machines[HERE].device}")
        for namespace in (bridge, *namespaces.values()):
            namespace.close()


def _configure(launcher: Sequence[str], *lines: str) -> None:
    command = [*launcher, "ip", "-batch", "-"]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise OSError(f"ip: {done.stderr.strip()}")
