"""Base of the hot store's verbs."""

import attrs

from storage.redis.transport.pipeline import Pipeline


@attrs.define(eq=False, slots=False)
class ScriptStore:
    """Verbs of the hot store, which call its scripts."""

    _pipeline: Pipeline
