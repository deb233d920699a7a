"""Attributes that are kept for their owner and mean nothing to the engine."""

from api.aws.protocol.metadata import Annotations

_KEPT = Annotations("sqs.")
annotation, annotated = _KEPT.read, _KEPT.write
