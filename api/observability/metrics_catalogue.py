"""Catalogue of all metrics, against which the documentation and the rules are tested.

Each has its name, type, labels and source.
"""

from collections.abc import Iterator
from typing import NamedTuple

from api.observability.metric_definitions import METRICS
from api.observability.resource_metrics import OBJECT_METRICS
from api.observability.store_metrics import STATE_METRICS

COUNTED, STORED, BY_NAME = "counted", "held", "by name"


class MetricDescription(NamedTuple):
    """Description of a metric.

    `where`: counted by processes and added up, held by the stores, or returned for objects by name.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str
    where: str

    @property
    def series(self) -> frozenset[str]:
        """The names of its time series."""
        if self.kind != "histogram":
            return frozenset((self.name,))
        return frozenset(f"{self.name}{part}" for part in ("_bucket", "_sum", "_count"))


def catalogue() -> Iterator[MetricDescription]:
    """Yield all metrics, in the order in which they are documented."""
    for metric in METRICS:
        [family] = metric.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield MetricDescription(
            name, family.type, metric._labelnames, family.documentation, COUNTED
        )
    for where, metrics in ((STORED, STATE_METRICS), (BY_NAME, OBJECT_METRICS)):
        for metric_by_name in metrics:
            yield MetricDescription(
                metric_by_name.name,
                metric_by_name.kind,
                metric_by_name.labels,
                metric_by_name.help,
                where,
            )


def row(metric: MetricDescription) -> str:
    """Return a metric's line in the documentation."""
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.text} |"
