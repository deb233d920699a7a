"""Tags of streams and consumers. One of them is a setting: see `deaggregation`."""

import unicodedata
from collections.abc import Mapping, Sequence

from api.aws.kinesis.errors import invalid
from api.aws.kinesis.shapes import Tag
from api.aws.protocol.reserved_tags import RESERVED_TAG, is_reserved
from storage.domain import limits

_PUNCTUATION = "_./=+-@:"


def with_tags(before: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the tags with those added. Raises AwsError for too many or invalid tags.

    Tags of another protocol may have any characters, and stay.
    """
    together = {**before, **added}
    if len(together) > limits.TAGS_MAX:
        raise invalid(
            f"Failed to add tags to stream: a given resource cannot have more than {limits.TAGS_MAX} tags associated with it."
        )
    _check_keys(added)
    if not all(_is_allowed(letter) for words in added.items() for letter in "".join(words)):
        raise invalid(
            "Some tags contain invalid characters. Valid characters: Unicode letters, digits, "
            "white space, _ . / = + - @ :."
        )
    return together


def _check_keys(tags: Mapping[str, str]) -> None:
    if any(is_reserved(key) for key in tags):
        raise invalid(RESERVED_TAG)


def _is_allowed(letter: str) -> bool:
    """Return whether the character is a letter, mark, digit, space or allowed punctuation."""
    return letter in _PUNCTUATION or unicodedata.category(letter)[0] in "LMNZ"


def without_tags(before: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Return the tags without those removed; missing keys are ignored."""
    return {key: value for key, value in before.items() if key not in keys}


def tag_list(tags: Mapping[str, str]) -> list[Tag]:
    """Return the tags ordered by key."""
    return [Tag(key, tags[key]) for key in sorted(tags)]
