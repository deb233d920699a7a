"""The part of Kubernetes that Spark uses: an API server, and a kubelet that runs the container of each pod as a process here.

Nothing is scheduled and nothing is isolated; a pod's process gets the environment, the command and the arguments of its container,
and no other variable but PATH and PYTHONPATH, which stand for the image.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from storage.embedded.processes import child_setup

ADDRESS = "127.0.0.1"
WATCHED: dict[str, Any] = {}
"""The response to a watch that asks for a WebSocket: the client then streams over HTTP."""
_VERBS = {"POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}


class KubernetesApi:
    """Pods of one namespace: `requests` counts calls by verb and resource, in the words of a Role."""

    def __init__(self, folder: Path, image_environment: Mapping[str, str]) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.created: list[dict[str, Any]] = []
        self.requests: Counter[tuple[str, str]] = Counter()
        self._folder = folder
        self._image = dict(image_environment)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = Lock()
        self._kubelet = ThreadPoolExecutor(1)  # a process ends with the thread that has started it
        self.closed = Event()
        self._server = ThreadingHTTPServer((ADDRESS, 0), self._handler())

    @property
    def master_url(self) -> str:
        return f"k8s://http://{ADDRESS}:{self._server.server_address[1]}"

    def add(self, name: str) -> None:
        """Add a pod that runs elsewhere: the driver's."""
        metadata = {"name": name, "uid": f"uid-of-{name}", "labels": {}}
        self.pods[name] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}

    def kill_container(self, pod: str) -> None:
        """Kill the process of a pod, which then has failed."""
        self._processes[pod].kill()
        self._processes[pod].wait()

    def serve(self) -> None:
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()
        for name in list(self._processes):
            self._end(name)
        self._kubelet.shutdown()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, response = api.respond(self.command, self.path, body)
                if response is WATCHED and "Upgrade" not in self.headers:
                    self._hang()
                    return
                encoded = json.dumps(response).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def _hang(self) -> None:
                """Answer a watch without events: Spark lists pods from time to time too."""
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.flush()
                api.closed.wait()
                self.close_connection = True

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _serve

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        return Handler

    def respond(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """Return the status and the resource."""
        url = urlsplit(target)
        resource, name = _resource_of(url.path)
        query = parse_qs(url.query)
        verb = _verb(method, name, is_watch=query.get("watch") == ["true"])
        with self._lock:
            self.requests[verb, resource] += 1
            if verb == "watch":
                return 200, WATCHED
            if resource == "pods" and verb != "patch":
                [selector] = query.get("labelSelector", [""])
                return self._pods(verb, name, selector, body)
        return 404, _status(404)

    def _pods(self, verb: str, name: str, selector: str, body: bytes) -> tuple[int, Any]:
        match verb:
            case "list":
                return 200, self._list(self._selected(selector))
            case "deletecollection":
                chosen = self._selected(selector)
                for pod in chosen:
                    self._delete(pod["metadata"]["name"])
                return 200, self._list(chosen)
            case "create":
                return 201, self._create(json.loads(body))
            case _ if name not in self.pods:
                return 404, _status(404)
            case "get":
                return 200, self._current(self.pods[name])
            case _:
                return 200, self._delete(name)

    def _selected(self, selector: str) -> list[dict[str, Any]]:
        terms = [term for term in selector.split(",") if term]
        return [
            pod
            for pod in self.pods.values()
            if all(_matches(pod["metadata"]["labels"], term) for term in terms)
        ]

    def _list(self, pods: list[dict[str, Any]]) -> dict[str, Any]:
        items = [self._current(pod) for pod in pods]
        return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}

    def _delete(self, name: str) -> dict[str, Any]:
        self._end(name)
        return self.pods.pop(name)

    def _create(self, pod: dict[str, Any]) -> dict[str, Any]:
        name = pod["metadata"]["name"]
        self.created.append(pod)
        self.pods[name] = pod
        self._processes[name] = self._kubelet.submit(
            self._run, name, pod["spec"]["containers"][0]
        ).result()
        return self._current(pod)

    def _run(self, name: str, container: Mapping[str, Any]) -> "subprocess.Popen[bytes]":
        fields = {"status.podIP": ADDRESS, "metadata.name": name}
        given = {
            one["name"]: one["value"]
            if one.get("value") is not None
            else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in container["env"]
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*container["command"], *container["args"]],
                env=self._image | given,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                preexec_fn=child_setup(signal.SIGKILL),
            )

    def _current(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return a pod with its state."""
        process = self._processes.get(pod["metadata"]["name"])
        code = None if process is None else process.poll()
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        return pod | {"status": {"phase": phase, "podIP": ADDRESS}}

    def _end(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()


def _matches(labels: Mapping[str, str], term: str) -> bool:
    """Return whether labels match `name=value` or `name!=value`."""
    name, _, value = term.partition("=")
    return (labels.get(name.rstrip("!")) == value) is not name.endswith("!")


def _resource_of(path: str) -> tuple[str, str]:
    """Return the resource and the name of /api/v1/namespaces/{namespace}/{resource}/{name}."""
    words = path.strip("/").split("/")[4:]
    return (words[0] if words else "", words[1] if len(words) > 1 else "")


def _verb(method: str, name: str, *, is_watch: bool) -> str:
    if method == "GET":
        return "watch" if is_watch else "get" if name else "list"
    return "deletecollection" if method == "DELETE" and not name else _VERBS[method]


def _status(code: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code}


@contextmanager
def kubernetes_api(folder: Path, driver: str) -> Iterator[KubernetesApi]:
    """Serve for the length of the block; `driver` is the name of the driver's pod."""
    image = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    api = KubernetesApi(folder, image)
    api.add(driver)
    api.serve()
    try:
        yield api
    finally:
        api.close()
