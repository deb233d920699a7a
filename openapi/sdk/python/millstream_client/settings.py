"""Where the service is and who calls: arguments first, then the environment, then this machine."""

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from millstream_client.retries import Retries

URL = "http://127.0.0.1:8080"
DEFAULT = Retries()


@dataclass(frozen=True)
class Options:
    """How a client calls. `timeout_s` is for an answer, beyond what the call itself waits for."""

    url: str
    api_key: str
    timeout_s: float = 30.0
    retries: Retries = DEFAULT

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every call."""
        headers = {"user-agent": f"millstream-client/{_version()}"}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        return headers


def read_options(
    url: str | None, api_key: str | None, timeout_s: float, retries: Retries
) -> Options:
    """The options of a client: `MILLSTREAM_URL` and `MILLSTREAM_API_KEY` for what is not said."""
    return Options(
        (url or os.environ.get("MILLSTREAM_URL") or URL).rstrip("/"),
        os.environ.get("MILLSTREAM_API_KEY", "") if api_key is None else api_key,
        timeout_s,
        retries,
    )


@lru_cache(maxsize=1)
def _version() -> str:
    for distribution in ("millstream-client", "millstream"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "unknown"
