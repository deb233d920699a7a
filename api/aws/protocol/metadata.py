"""What a door keeps with a queue or a stream for its owner, and what means nothing to the engine: annotations."""

from typing import TypeVar

from msgspec.structs import replace

from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec

Spec = TypeVar("Spec", QueueSpec, StreamSpec)


class Annotations:
    """Those of one door, whose names begin alike."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def read(self, spec: QueueSpec | StreamSpec, name: str) -> str | None:
        """What was kept under a name."""
        return spec.annotations.get(self._prefix + name)

    def write(self, spec: Spec, name: str, text: str | None) -> Spec:
        """The specification with `text` kept under the name; None keeps nothing there."""
        place = self._prefix + name
        kept = {key: value for key, value in spec.annotations.items() if key != place}
        if text is not None:
            kept[place] = text
        return spec if kept == spec.annotations else replace(spec, annotations=kept)
