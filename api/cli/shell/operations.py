"""Operations of the generated client by name: a command loads only what it calls."""

from importlib import import_module
from typing import Any


class JsonBody(dict[str, Any]):
    """Body of a call: a JSON object in the form of the REST API."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return self


def operation(name: str, /, *path: str, **parameters: Any) -> Any:
    """Return the call of an operation, such as `queues.get_queue`.

    `path`: the parameters of its path. Other parameters that are None are omitted.
    """
    module = import_module(f"millstream_client.core.api.{name}")
    present = {key: value for key, value in parameters.items() if value is not None}
    return getattr(module, name.partition(".")[2])(*path, **present)
