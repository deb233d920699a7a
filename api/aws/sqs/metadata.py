"""Annotations of a queue's specification: attributes that the engine stores and does not use."""

from api.aws.protocol.metadata import Annotations

_ANNOTATIONS = Annotations("sqs.")
annotation, annotated = _ANNOTATIONS.read, _ANNOTATIONS.write
