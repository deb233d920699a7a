"""A local cluster: three masters, each with a replica, by default."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import redis
from redis.cluster import ClusterNode, RedisCluster

from storage.embedded.servers import Alive, always, running
from storage.embedded.valkey import CLUSTER_SLOT_LAST, Setting, ValkeyServer

MASTERS = 3
FORM_S_MAX = 30.0
NODE_TIMEOUT_MS = 2_000


class _Node(ValkeyServer):
    """A node whose slots or master are assigned by the cluster set-up."""

    def __init__(self, data: Path, password: str) -> None:
        super().__init__(data, cluster=True)
        self._password = password or self._password

    @property
    def password(self) -> str:
        return self._password

    @property
    def port(self) -> int:
        return self._cluster_port

    def _cluster_settings(self) -> dict[str, Setting]:
        return super()._cluster_settings() | {
            "masterauth": self._password,
            "cluster-node-timeout": str(NODE_TIMEOUT_MS),
            "cluster-require-full-coverage": "no",
        }

    def _is_ready(self, client: "redis.Redis") -> bool:
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.BusyLoadingError):
            return False

    def wait_ready(self, timeout_s: float = FORM_S_MAX, alive: Alive = always) -> None:
        super().wait_ready(timeout_s, alive)


class ClusterClient(RedisCluster):
    """A cluster-aware client.

    Settings are set on every master; closing it leaves no connection open.
    """

    def close(self) -> None:
        if hasattr(self, "nodes_manager"):
            self.disconnect_connection_pools()
        super().close()

    def config_set(self, *arguments: Any, **options: Any) -> Any:
        return super().config_set(*arguments, target_nodes=RedisCluster.PRIMARIES, **options)


class Masters:
    """The cluster: `url` is that of its first master, `nodes` lists masters, then replicas."""

    def __init__(self, nodes: list[_Node]) -> None:
        self.nodes = nodes
        self.url = nodes[0].url

    def direct(self, nth: int) -> Any:
        """Return a client of one server."""
        node = self.nodes[nth]
        return redis.Redis(host="127.0.0.1", port=node.port, password=node.password)

    def client(self, **options: Any) -> ClusterClient:
        """Return a separate client of the cluster, which the caller may close."""
        seeds = [ClusterNode("127.0.0.1", node.port) for node in self.nodes]
        return ClusterClient(startup_nodes=seeds, password=self.nodes[0].password, **options)

    def client_for(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Return a replacement of `redis.Redis.from_url` that sees the whole cluster."""

        def from_url(url: str, **options: Any) -> Any:
            if url != self.url:
                return plain(url, **options)
            return self.client(**options)

        return from_url

    def pids(self) -> list[int]:
        """Return the process ids of all servers."""
        clients = [self.direct(nth) for nth in range(len(self.nodes))]
        pids = [int(client.info("server")["process_id"]) for client in clients]
        for client in clients:
            client.close()
        return pids

    def empty(self) -> None:
        """Delete every key."""
        with self.client() as client:
            client.flushall(target_nodes=RedisCluster.PRIMARIES)


@contextmanager
def running_masters(
    data: Path, count: int = MASTERS, *, has_replicas: bool = True
) -> Iterator[Masters]:
    """Run a cluster of so many masters for the length of the block."""
    nodes: list[_Node] = []
    with ExitStack() as stack:
        for nth in range((1 + has_replicas) * count):
            folder = data / str(nth)
            folder.mkdir()
            node = _Node(folder, nodes[0].password if nodes else "")
            stack.enter_context(running(node))
            nodes.append(node)
        masters = Masters(nodes)
        _form(masters, count)
        yield masters


def _form(masters: Masters, count: int) -> None:
    nodes = len(masters.nodes)
    replicas = nodes - count
    clients = [masters.direct(nth) for nth in range(nodes)]
    for nth in range(count):
        first = nth * (CLUSTER_SLOT_LAST + 1) // count
        last = (nth + 1) * (CLUSTER_SLOT_LAST + 1) // count - 1
        clients[nth].execute_command("CLUSTER ADDSLOTSRANGE", first, last)
        clients[nth].execute_command("CLUSTER SET-CONFIG-EPOCH", nth + 1)
    for node in masters.nodes[1:]:
        clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port)
    _wait(lambda: all(_known(client) == nodes for client in clients))
    ids = [client.execute_command("CLUSTER MYID").decode() for client in clients]
    for nth in range(replicas):
        clients[count + nth].execute_command("CLUSTER REPLICATE", ids[nth])
    _wait(lambda: all(_is_whole(client, replicas // count) for client in clients))
    for client in clients:
        client.close()


def _known(client: Any) -> int:
    return int(client.execute_command("CLUSTER INFO")["cluster_known_nodes"])


def _is_whole(client: Any, replicas: int) -> bool:
    """Return whether the node serves, and has its replicas or is an up-to-date one."""
    if client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
        return False
    info = client.info("replication")
    if info["role"] == "master":
        return int(info["connected_slaves"]) == replicas
    return str(info["master_link_status"]) == "up"


def _wait(done: Callable[[], bool]) -> None:
    give_up_at = monotonic() + FORM_S_MAX
    while not done():
        assert monotonic() < give_up_at, "the cluster did not form"
        sleep(0.05)
