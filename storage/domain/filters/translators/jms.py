"""Translator of JMS message selectors (Jakarta Messaging 3.1, section 3.8)."""

from storage.domain.filters.translation import Translation, TranslationRefused, translate_sql

FIELDS_NOTE = (
    "JMSType is the subject, JMSXGroupID the key, JMSMessageID and JMSCorrelationID the headers"
    " MessageId and CorrelationId; other fields are headers of the same name."
)


def translate(condition: object) -> Translation:
    """Translate a selector, a text; an empty selector selects every message.

    Raises TranslationRefused.
    """
    if not isinstance(condition, str):
        raise TranslationRefused("A selector is a text.")
    if not condition.strip():
        return Translation({})
    return translate_sql(condition, *([FIELDS_NOTE] if "JMS" in condition else []))
