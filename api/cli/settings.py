"""How a process of the deployment is told its settings: through the environment."""

import json
import os
from collections.abc import Mapping

from pydantic import SecretStr

from api.settings import Settings

METRICS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
STORES = ("redis_url", "database_url")  # also known by names without our prefix


def child_environment(settings: Settings, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our own environment with `settings` written over it, and `extra` over that."""
    environment = dict(os.environ)
    for name, value in settings:
        if value is None:
            continue
        environment[f"MILLSTREAM_{name.upper()}"] = _word(value)
        if name in STORES:
            environment[name.upper()] = _word(value)
    return environment | dict(extra or {})


def _word(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return str(value)


def environment() -> Mapping[str, str]:
    """What the command line reads of its environment: where the service is, and where profiles are."""
    return os.environ
