"""Time series schemas."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339, to_seconds
from api.rest.schema_base import Time
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.timeseries.samples import Samples

Values = list[float | None]


class SeriesOut(BaseModel):
    """Measurements over time: a value per column at `start_at` and every `step_seconds`.

    The step is ten seconds for up to an hour, and otherwise fifteen minutes. `null` means not measured, which is not
    zero. Levels are means over a step, with the maximum in `<column>_max`; ages and lags are the
    maximum of a step; rates are per second, over the step that ends there.
    """

    start_at: Time
    step_seconds: float
    columns: Annotated[
        dict[str, list[float | None]],
        Field(description="Values by column; all columns have the same length."),
    ]

    @classmethod
    def from_domain(cls, samples: Samples, columns: str = "") -> Self:
        """Return the series with the comma-separated `columns`, or all. Raises ValidationFailed."""
        measured = dict(_on_the_wire(*column) for column in samples.columns.items())
        return cls(
            start_at=rfc3339(samples.start_ms),
            step_seconds=to_seconds(samples.step_ms),
            columns=_chosen(measured, columns.split(",")) if columns else measured,
        )


def _on_the_wire(name: str, values: tuple[float | None, ...]) -> tuple[str, Values]:
    if not name.endswith("_ms"):
        return name, list(values)
    seconds = [None if value is None else value / limits.SECOND_MS for value in values]
    return f"{name.removesuffix('_ms')}_seconds", seconds


def _chosen(measured: dict[str, Values], names: list[str]) -> dict[str, Values]:
    for name in names:
        if name not in measured:
            columns = ", ".join(measured)
            raise ValidationFailed.at(
                "/columns", f"Unknown column '{name}'; the columns are {columns}", "invalid"
            )
    return {name: measured[name] for name in names}
