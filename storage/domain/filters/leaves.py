"""Leaves of a document: its scalar values by path, with their array elements.

A path is the keys of nested objects joined with dots; a key that has dots itself is the same path as
nested objects are. An array adds nothing to the path: each of its elements is a leaf of it, and knows
which array it belongs to and at which index. Objects and empty arrays are not leaves.
"""

from functools import lru_cache
from typing import Any

from storage.domain import limits

Pins = tuple[tuple[int, int], ...]
"""Arrays that a leaf lies in, outermost first: (identity of the array, index of the element)."""

Leaf = tuple[Any, Pins]
"""A scalar value, and the array elements that it belongs to."""

Leaves = list[Leaf]

Splits = tuple[tuple[tuple[str, int], ...], ...]


@lru_cache(maxsize=10_000)
def splits(path: str) -> Splits:
    """Return the keys that may follow at each word of a path, each with the word after it.

    The longest comes first: `a.b` at 0 has `a.b` and `a`.
    """
    words = path.split(".")
    return tuple(
        tuple((".".join(words[start:end]), end) for end in range(len(words), start, -1))
        for start in range(len(words) + 1)
    )


def leaves_at(value: Any, path: str) -> Leaves:
    """Return the leaves at a path below a value, in document order."""
    keys = splits(path)
    end = len(keys) - 1
    leaves: Leaves = []
    stack: list[tuple[Any, int, Pins]] = [(value, 0, ())]
    while stack:
        node, start, pins = stack.pop()
        if isinstance(node, dict):
            stack += [(node[key], after, pins) for key, after in keys[start] if key in node]
        elif isinstance(node, list):
            stack += [
                (element, start, element_pins) for element, element_pins in elements(node, pins)
            ]
        elif start == end:
            leaves.append((node, pins))
    return leaves


def elements(array: list[Any], pins: Pins) -> list[tuple[Any, Pins]]:
    """Return an array's elements with their pins, last first; none if it is nested too deeply."""
    if len(pins) >= limits.FILTER_ARRAYS_MAX:
        return []
    identity = id(array)
    last = len(array) - 1
    return [
        (element, (*pins, (identity, last - nth))) for nth, element in enumerate(reversed(array))
    ]


class PathNode:
    """Node of a tree of paths: the nodes below it by all keys that lead to them."""

    __slots__ = ("below", "path", "uses")

    def __init__(self) -> None:
        self.path = ""
        self.uses = 0
        self.below: dict[str, PathNode] = {}

    def collect(self, value: Any, leaves: dict[str, Leaves]) -> None:
        """Add the leaves of the paths at and below this node."""
        stack: list[tuple[PathNode, Any, Pins]] = [(self, value, ())]
        while stack:
            node, value, pins = stack.pop()
            if isinstance(value, dict):
                stack += node._children(value, pins)
            elif isinstance(value, list):
                stack += [(node, child, child_pins) for child, child_pins in elements(value, pins)]
            elif node.uses:
                leaves.setdefault(node.path, []).append((value, pins))

    def _children(self, value: dict[str, Any], pins: Pins) -> list[tuple["PathNode", Any, Pins]]:
        """Look up the shorter side in the longer one."""
        below = self.below
        if len(value) < len(below):
            return [(below[key], child, pins) for key, child in value.items() if key in below]
        return [(node, value[key], pins) for key, node in below.items() if key in value]


class PathTree:
    """Paths to extract from documents, each as often as it is in use."""

    def __init__(self) -> None:
        self.tops: dict[str, PathNode] = {}

    def add(self, path: str) -> None:
        """Add a use of a path."""
        words = path.split(".")
        chain = [self.tops.setdefault(words[0], PathNode())]
        for end in range(2, len(words) + 1):
            node = chain[-1].below.get(words[end - 1]) or PathNode()
            for start, ancestor in enumerate(chain, 1):
                ancestor.below[".".join(words[start:end])] = node
            chain.append(node)
        chain[-1].path = path
        chain[-1].uses += 1

    def discard(self, path: str) -> None:
        """Remove a use of a path, which it has."""
        words = path.split(".")
        chain = [self.tops[words[0]]]
        for word in words[1:]:
            chain.append(chain[-1].below[word])
        chain[-1].uses -= 1
        while chain and not (chain[-1].uses or chain[-1].below):
            end = len(chain)
            chain.pop()
            for start, ancestor in enumerate(chain, 1):
                del ancestor.below[".".join(words[start:end])]
            if not chain:
                del self.tops[words[0]]
