"""Translation by system."""

from collections.abc import Callable, Mapping
from typing import Any

from storage.domain.filters.translation import Translation, TranslationRefused
from storage.domain.filters.translators import jms, pubsub, rabbitmq, service_bus

TRANSLATORS: Mapping[str, Callable[[Any], Translation]] = {
    "jms": jms.translate,
    "pubsub": pubsub.translate,
    "rabbitmq": rabbitmq.translate,
    "service_bus": service_bus.translate,
}


def translate(system: str, condition: object) -> Translation:
    """Translate a condition, which is a text or an object, of one of the systems.

    Raises TranslationRefused.
    """
    translator = TRANSLATORS.get(system)
    if translator is None:
        raise TranslationRefused(f"The system must be one of {', '.join(TRANSLATORS)}.")
    return translator(condition)
