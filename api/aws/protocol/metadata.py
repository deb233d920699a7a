"""Metadata that a protocol stores with a queue or stream, opaque to the engine."""

from typing import TypeVar

from msgspec.structs import replace

from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec

Spec = TypeVar("Spec", QueueSpec, StreamSpec)


class Annotations:
    """Annotations of one protocol, whose names share a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def read(self, spec: QueueSpec | StreamSpec, name: str) -> str | None:
        """Return the text stored under a name."""
        return spec.annotations.get(self._prefix + name)

    def write(self, spec: Spec, name: str, text: str | None) -> Spec:
        """Return the specification with `text` stored under the name; None removes it."""
        full_name = self._prefix + name
        annotations = {key: value for key, value in spec.annotations.items() if key != full_name}
        if text is not None:
            annotations[full_name] = text
        return spec if annotations == spec.annotations else replace(spec, annotations=annotations)
