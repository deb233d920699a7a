"""Annotations of a queue's specification.

Attributes that the engine stores for their owner and does not use.
"""

from api.aws.protocol.metadata import Annotations

_ANNOTATIONS = Annotations("sqs.")
annotation, annotated = _ANNOTATIONS.read, _ANNOTATIONS.write
