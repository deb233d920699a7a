"""Tags of a queue: key-value pairs that its owner chooses."""

from collections.abc import Mapping

from api.aws.sqs.errors import invalid
from storage.domain import limits


def check_tags(tags: Mapping[str, str]) -> None:
    """Raise AwsError unless a queue may have these tags."""
    if len(tags) > limits.TAGS_MAX:
        raise invalid(f"Too many tags: a queue has {limits.TAGS_MAX} at most.")
    for key, value in tags.items():
        if not 1 <= len(key) <= limits.TAG_KEY_CHARACTERS_MAX or not _is_text(key):
            raise invalid("A tag's key is 1 to 128 characters of text.")
        if len(value) > limits.TAG_VALUE_CHARACTERS_MAX or not _is_text(value):
            raise invalid("A tag's value is up to 256 characters of text.")


def _is_text(text: str) -> bool:
    """Return whether the text is printable: letters, numbers, punctuation and spaces.

    Any script is allowed.
    """
    return text.isprintable()
