"""Catalogue of all metrics, against which the documentation and the rules are tested.

Each has its name, type, labels and source.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple, TypeVar

from prometheus_client.metrics import MetricWrapperBase

from api.observability import metric_definitions, resource_metrics, store_metrics
from api.observability.store_metrics import StateMetric

T = TypeVar("T")


def _defined(module: ModuleType, kind: type[T]) -> tuple[T, ...]:
    """Return the metrics that a module defines, in its order."""
    return tuple(value for value in vars(module).values() if isinstance(value, kind))


METRICS = _defined(metric_definitions, MetricWrapperBase)
STATE_METRICS = _defined(store_metrics, StateMetric)
OBJECT_METRICS = _defined(resource_metrics, StateMetric)

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
