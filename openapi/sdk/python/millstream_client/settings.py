"""Address and credentials: from arguments, then the environment, then this machine."""

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from millstream_client.hooks import Hooks
from millstream_client.retries import Retries

URL = "http://127.0.0.1:8080"
DEFAULT = Retries()
NO_HOOKS = Hooks()

ApiKey = str | Callable[[], str]
"""A key or a token, or what gives the one that is good now: it is asked before each call."""


Acknowledge = Literal["primary"]
"""Store that acknowledges the sends and appends of a replicated deployment, in place of enough of its stores."""


@dataclass(frozen=True)
class Options:
    """Options of a client.

    `timeout_s` limits a response, beyond the wait that a call requests. `ca_file`: PEM file of the CA that signed the service's
    certificate; None: the CAs that the machine trusts. `transport`: transport of httpx, synchronous and asynchronous,
    instead of connections. `acknowledge`: 'primary' lets the primary of a replicated deployment acknowledge sends and appends
    alone.
    """

    url: str
    api_key: ApiKey = field(repr=False)
    timeout_s: float = 30.0
    retries: Retries = DEFAULT
    ca_file: str | None = None
    hooks: Hooks = NO_HOOKS
    transport: Any = None
    acknowledge: Acknowledge | None = None

    def replaced(
        self, timeout_s: float | None, retries: Retries | None, acknowledge: Acknowledge | None
    ) -> "Options":
        """Return options with another time limit, other retries or another acknowledgement."""
        return replace(
            self,
            timeout_s=self.timeout_s if timeout_s is None else timeout_s,
            retries=retries or self.retries,
            acknowledge=acknowledge or self.acknowledge,
        )

    @property
    def is_https(self) -> bool:
        """Return whether the service is reached by TLS."""
        return self.url.startswith("https")

    def trust(self) -> ssl.SSLContext:
        """Return the trust store for the service's certificate; an empty one for http.

        The certificate authorities take 30 ms to read. Raises OSError for an invalid file.
        """
        if not self.is_https:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return ssl.create_default_context(cafile=self.ca_file)

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of every call."""
        headers = {"user-agent": f"millstream-client/{_version()}"}
        key = self.api_key() if callable(self.api_key) else self.api_key
        if key:
            headers["authorization"] = f"Bearer {key}"
        if self.acknowledge:
            headers["millstream-acknowledge"] = self.acknowledge
        return headers


def read_options(
    url: str | None,
    api_key: ApiKey | None,
    timeout_s: float,
    retries: Retries,
    ca_file: str | None = None,
    *,
    hooks: Hooks = NO_HOOKS,
    transport: Any = None,
) -> Options:
    """Return the options of a client.

    `MILLSTREAM_URL`, `MILLSTREAM_API_KEY` and `MILLSTREAM_CA_FILE` are the defaults of omitted arguments.
    """
    return Options(
        (url or os.environ.get("MILLSTREAM_URL") or URL).rstrip("/"),
        os.environ.get("MILLSTREAM_API_KEY", "") if api_key is None else api_key,
        timeout_s,
        retries,
        ca_file or os.environ.get("MILLSTREAM_CA_FILE") or None,
        hooks,
        transport,
    )


@lru_cache(maxsize=1)
def _version() -> str:
    for distribution in ("millstream-client", "millstream"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "unknown"
