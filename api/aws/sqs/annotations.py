"""Attributes that are kept for their owner and mean nothing to the engine: a specification's annotations."""

from msgspec.structs import replace

from storage.domain.queues import QueueSpec

_PREFIX = "sqs."


def annotation(spec: QueueSpec, name: str) -> str | None:
    """What was kept under the attribute's name."""
    return spec.annotations.get(_PREFIX + name)


def annotated(spec: QueueSpec, name: str, text: str | None) -> QueueSpec:
    """The specification with `text` kept under the attribute's name; None keeps nothing there."""
    kept = {key: value for key, value in spec.annotations.items() if key != _PREFIX + name}
    if text is not None:
        kept[_PREFIX + name] = text
    return spec if kept == spec.annotations else replace(spec, annotations=kept)
