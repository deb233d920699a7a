"""Invariant of spreads: T1, for the members of a route's target."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millstream_client.testing.topics.spreads import choose, label_of
from tests.chaos.checking.findings import Finding, Operations, answers
from tests.chaos.checking.topics import places_of, subject_of
from tests.chaos.history import Kind, Seen

SpreadTarget = Mapping[str, Any]
"""Target of a route in the form of the REST API."""


def spread(by: str, weights: Mapping[str, int]) -> SpreadTarget:
    """Return a target by the weights of its members, which are named such as `queue:billing`."""
    members = [(*label.split(":"), weight) for label, weight in weights.items()]
    return {"spread": [{kind: name, "weight": weight} for kind, name, weight in members], "by": by}


def labels_of(targets: Sequence[SpreadTarget]) -> set[str]:
    """Return the kinds and names of all members of targets."""
    return {label_of(dict(member)) for target in targets for member in target["spread"]}


def message_is_in_its_member(
    route: str, targets: Sequence[SpreadTarget]
) -> Callable[[Operations], Finding]:
    """T1: a message of a spread is in the member that its key or place belongs to, and in no other.

    `targets`: those that the route has had. A change of it names in its answer the number of the revision (`offset`), that of the
    target (`shard`), and the topic's stream (`id`). The member is computed by the in-memory service of the SDK, which has a hash of its own.
    """
    labels = labels_of(targets)

    def check(history: Operations) -> Finding:
        revisions = {
            (one.log, seen.offset): seen
            for one, seen in answers(history, Kind.ROUTE)
            if seen.value == route
        }
        places = places_of(history)
        wrong, checked = [], 0
        for one, seen in answers(history, Kind.TAKEN):
            for number in seen.routes:
                if (revision := revisions.get((one.log, number))) is None:
                    continue
                expected = _label(targets[revision.shard], revision.id, seen)
                present = {
                    label for label in labels for _ in places[label.partition(":")[2], seen.value]
                }
                checked += 1
                if present != {expected}:
                    wrong.append(f"{seen.value} of {expected} is in {sorted(present)}")
        return Finding(f"T1 a message is in its member of {route}", checked, tuple(wrong))

    return check


def _label(target: SpreadTarget, stream_id: str, seen: Seen) -> str:
    """Return the member of a message. A value is its key and a number."""
    texts = {
        "key": seen.value.rpartition(":")[0],
        "subject": subject_of(seen.value),
        "random": f"{stream_id}-{seen.shard}-{seen.offset}",
    }
    return label_of(choose(target["spread"], texts[target["by"]]))
