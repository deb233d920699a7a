"""Shell completion of names that the service has.

On any error there are none, and the wait is short.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream_client import Millstream

PATIENCE_S = 0.5
NAMES_MAX = 100

Complete = Callable[[Any, str], list[str]]


def _names(list_all: Callable[["Millstream", str], Any]) -> Complete:
    def complete(ctx: Any, incomplete: str) -> list[str]:
        try:
            return _list_names(list_all, ctx.params, incomplete)
        except Exception:  # a shell expects names, and nothing else
            return []

    return complete


def _list_names(
    list_all: Callable[["Millstream", str], Any], options: dict[str, Any], incomplete: str
) -> list[str]:
    from itertools import islice

    from api.cli.config.process_settings import environment
    from api.cli.config.profiles import find_target
    from millstream_client import Millstream, Retries

    target = find_target(
        environment(),
        url=options.get("url"),
        api_key=options.get("api_key"),
        ca_file=options.get("ca_file"),
        profile=options.get("profile"),
    )
    with Millstream(
        target.url.value,
        target.api_key.value,
        timeout_seconds=PATIENCE_S,
        ca_file=target.ca_file.value,
        retries=Retries(seconds=0),
    ) as client:
        return [resource.name for resource in islice(list_all(client, incomplete), NAMES_MAX)]


queue_names = _names(lambda client, prefix: client.queues(prefix))
stream_names = _names(lambda client, prefix: client.streams(prefix))
group_names = _names(lambda client, prefix: client.groups(prefix))


def profile_names(ctx: Any, incomplete: str) -> list[str]:
    """Return the names of profiles that begin so."""
    from api.cli.config.process_settings import environment
    from api.cli.config.profiles import config_path, read_config

    try:
        profiles = read_config(config_path(environment())).get("profiles", {})
    except Exception:  # a shell expects names, and nothing else
        return []
    return [name for name in profiles if name.startswith(incomplete)]
