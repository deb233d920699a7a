"""Weighted rendezvous hashing: consistent choice of one of several members.

Each member draws an exponential variate from the hash of its label and the key, with its weight as the rate, and the lowest one
wins: a member of weight w gets the share w / Σ w of all keys. A draw does not depend on the other members, so that a new member
takes keys from the others alone, and the keys of a removed one go to all others by their weights (Thaler and Ravishankar, 1998;
weights as in Schindelhauer and Schomaker, 2005).
"""

from collections.abc import Sequence
from hashlib import blake2b
from math import log

_BITS = 53  # of a double's fraction
_SHIFT = 64 - _BITS
_SCALE = 2.0**-_BITS


class RendezvousHash:
    """Members with labels that are all different, and positive weights."""

    def __init__(self, members: Sequence[tuple[str, int]]) -> None:
        self._members = [
            (blake2b(label.encode() + b"\0", digest_size=8), weight) for label, weight in members
        ]

    def member(self, key: bytes) -> int:
        """Return the number of the member that a key belongs to; the same in every process."""
        lowest, chosen = float("inf"), 0
        for number, (prefix, weight) in enumerate(self._members):
            state = prefix.copy()
            state.update(key)
            drawn = int.from_bytes(state.digest()) >> _SHIFT
            variate = -log((drawn + 0.5) * _SCALE) / weight
            if variate < lowest:
                lowest, chosen = variate, number
        return chosen
