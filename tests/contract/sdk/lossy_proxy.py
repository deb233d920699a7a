"""Proxy that loses responses: the service executes a call whose caller gets no answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class LossyProxy:
    """Its URL, and its switches.

    `lose`: number of next responses to lose. `lose_every`: of so many responses, one is lost.
    `refuse`: no connection is accepted.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (str(parts.hostname), int(parts.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = set()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._turn = threading.Lock()
        self._answers = 0
        self.lose = self.lose_every = 0
        self.refuse = False

    def run(self) -> None:
        """Serve until it is closed."""
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.refuse:
                near.close()
                continue
            far = socket.create_connection(self._target)
            self._sockets |= {near, far}
            threading.Thread(target=self._copy, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._copy, args=(far, near, True), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if answers and self._loses():
                    break
                target.sendall(data)
        self._end(source)
        self._end(target)

    def _loses(self) -> bool:
        with self._turn:
            self._answers += 1
            if self.lose:
                self.lose -= 1
                return True
            return bool(self.lose_every) and self._answers % self.lose_every == 0

    def _end(self, ended: socket.socket) -> None:
        with suppress(OSError):
            ended.shutdown(socket.SHUT_RDWR)
        self._sockets.discard(ended)
        ended.close()

    def cut(self) -> None:
        """Close every connection."""
        for each_socket in list(self._sockets):
            self._end(each_socket)

    def close(self) -> None:
        """Close every connection and stop."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


@contextmanager
def running_lossy_proxy(target: str) -> Iterator[LossyProxy]:
    """Run such a proxy in front of `target`."""
    proxy = LossyProxy(target)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(5)
