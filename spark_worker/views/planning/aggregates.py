"""Partial forms of aggregates: what a row stores, how two of them merge, and the result.

    count(x)          count                          sum                    the sum, or 0
    avg(x)            sum, count                     sum, sum               sum / count
    stddev, variance  count, mean, squares           Chan's formula, folded squares / (count - 1), or its root
    max_by(x, y)      max_by(x, y), max(y)           max_by, max            the first; y: with the place, for equal ones
    first(x)          min_by(x, place), min(place)   min_by, min            the first; place: arrival, shard, offset
    approx_…          a DataSketches sketch          union                  its estimate
    count(distinct x) the set of the values          union                  its size; collect_set: the set
    collect_list(x)   values with their places       concatenation          the values in the order of places

A merge sees the stored row of a key and that of the batch; of a session, the rows of all that it joins.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from spark_worker.views.planning.plans import JSON, Plans, children

if TYPE_CHECKING:
    from pyspark.sql import Column

_SELF_MERGING = {
    "sum": sf.sum,
    "min": sf.min,
    "max": sf.max,
    "bool_and": sf.bool_and,
    "every": sf.bool_and,
    "bool_or": sf.bool_or,
    "some": sf.bool_or,
    "any": sf.bool_or,
    "bit_and": sf.bit_and,
    "bit_or": sf.bit_or,
}
_MEANS = frozenset({"avg", "mean"})
_VARIANCES = {
    "stddev": (1, True),
    "std": (1, True),
    "stddev_samp": (1, True),
    "stddev_pop": (0, True),
    "variance": (1, False),
    "var_samp": (1, False),
    "var_pop": (0, False),
}
"""Degrees of freedom that are subtracted, and whether the result is the root."""
_SKETCHED = frozenset({"int", "bigint", "string", "binary"})
_FIRSTS = frozenset({"first", "first_value", "any_value"})
_LASTS = frozenset({"last", "last_value"})
_LISTS = frozenset({"array_agg", "collect_list"})
_PLACED = frozenset({"max_by", "min_by", *_FIRSTS, *_LASTS, *_LISTS})
"""Aggregates whose result depends on the order of records."""
_INEXACT = re.compile(r"(?:^|[:<,])(float|double)(?=$|[>,])")
_HASHED = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "string"),
        *("date", "timestamp", "timestamp_ntz"),
    }
)
"""Types whose sets Spark merges by hashing; those of others take the square of their size."""
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})

MERGEABLE = frozenset(
    {
        *(*_SELF_MERGING, *_MEANS, *_VARIANCES, *_FIRSTS, *_LASTS),
        *("count", "count_if", "max_by", "min_by"),
        *("approx_count_distinct", "approx_percentile", "percentile_approx"),
        *("collect_set", *_LISTS),
    }
)
"""Names of the aggregates that have a partial form."""


Place = Callable[[], "Column | None"]
"""Returns the place of a record in the order of arrival; None if the query's subqueries hide it."""


class NotMergeable(Exception):
    """The aggregate has no partial form; the text names it."""


@dataclass(frozen=True)
class PartialAggregate:
    """Partial form of one aggregate.

    `partials` are over the input, `merge` over stored partials, `result` over merged ones.
    """

    partials: tuple["Column", ...]
    merge: Callable[[Sequence["Column"]], list["Column"]]
    result: Callable[[Sequence["Column"]], "Column"]


def partial_of(plans: Plans, aggregate: Any, place_of_record: Place) -> PartialAggregate:
    """Return the partial form of an AggregateExpression. Raises NotMergeable."""
    function = aggregate.aggregateFunction()
    name = str(function.prettyName()).lower()
    type_ = _ddl(aggregate)
    if name not in MERGEABLE:
        raise NotMergeable(name)
    is_distinct = aggregate.isDistinct() and name not in ("min", "max", "collect_set")
    if is_distinct and name != "count":
        raise NotMergeable(f"{name}(distinct …)")
    place = place_of_record() if name in _PLACED else None
    arguments = [plans.column(part) for part in children(function)]
    if aggregate.filter().isDefined():
        condition = plans.column(aggregate.filter().get())
        arguments = [sf.when(condition, argument) for argument in arguments]
        place = None if place is None else sf.when(condition, place)
    if is_distinct or name == "collect_set":
        return _set(name, arguments, children(function))
    if name in ("count", "count_if"):
        return _simple(plans.column(aggregate), sf.sum, lambda value: sf.coalesce(value, sf.lit(0)))
    if name in _SELF_MERGING:
        return _simple(
            plans.column(aggregate), _SELF_MERGING[name], lambda value: value.cast(type_)
        )
    if name in _MEANS:
        return _mean(arguments[0], _catalog_type(children(function)[0]), type_)
    if name in _VARIANCES:
        return _variance(arguments[0], *_VARIANCES[name])
    if name == "approx_count_distinct":
        return _distinct(arguments[0], _catalog_type(children(function)[0]))
    if name in ("approx_percentile", "percentile_approx"):
        return _percentile(arguments[0], plans.column(children(function)[1]), type_)
    if name in ("max_by", "min_by"):
        return _by(arguments[0], _ordered(arguments[1], place), is_max=name == "max_by")
    if place is None:
        raise NotMergeable(
            f"{name} in a query over a subquery without arrival_time, shard and offset"
        )
    if name in _LISTS:
        return _list(arguments[0], place)
    return _by_arrival(name, function, arguments[0], place)


def _catalog_type(expression: Any) -> str:
    """Return the type of an expression, such as `decimal(10,2)`."""
    return str(expression.dataType().catalogString())


def _ddl(expression: Any) -> str:
    """Return the type of an expression as Spark parses it, with its names quoted."""
    return str(expression.dataType().sql())


def _simple(
    partial: "Column",
    merge: Callable[["Column"], "Column"],
    result: Callable[["Column"], "Column"],
) -> PartialAggregate:
    return PartialAggregate(
        (partial,), lambda values: [merge(values[0])], lambda values: result(values[0])
    )


def _mean(value: "Column", type_: str, result: str) -> PartialAggregate:
    """Sum and count; Spark sums whole numbers of a mean as doubles."""
    if type_ in _NUMBERS:
        value = value.cast("double")
    elif not type_.startswith("decimal"):
        raise NotMergeable(f"avg of {type_}")
    return PartialAggregate(
        (sf.sum(value), sf.count(value)),
        lambda values: [sf.sum(values[0]), sf.sum(values[1])],
        lambda values: sf.try_divide(values[0], values[1]).cast(result),
    )


def _variance(value: "Column", freedom: int, is_root: bool) -> PartialAggregate:
    """Count, mean and sum of squared differences, merged by the formula of Chan et al. (1979)."""
    value = value.cast("double")
    count = sf.count(value).cast("double")

    def merge(values: Sequence["Column"]) -> list["Column"]:
        names = ("n", "mean", "squares")
        states = sf.collect_list(
            sf.struct(*[value.alias(own) for value, own in zip(values, names, strict=True)])
        )
        none = sf.struct(*[sf.lit(0.0).alias(own) for own in names])
        folded = sf.aggregate(states, none, _add_variances)
        return [folded[own] for own in names]

    def result(values: Sequence["Column"]) -> "Column":
        n, _, squares = values
        variance = sf.when(n > freedom, squares / (n - freedom))
        return sf.sqrt(variance) if is_root else variance

    return PartialAggregate((count, sf.avg(value), sf.var_pop(value) * count), merge, result)


def _add_variances(total: "Column", added: "Column") -> "Column":
    """Return the count, the mean and the squares of two states."""
    n = total["n"] + added["n"]
    delta = added["mean"] - total["mean"]
    share = sf.try_divide(added["n"], n)
    both = sf.struct(
        n.alias("n"),
        (total["mean"] + delta * share).alias("mean"),
        (total["squares"] + added["squares"] + delta * delta * total["n"] * share).alias("squares"),
    )
    return sf.when(added["n"] > 0, both).otherwise(total)


def _distinct(value: "Column", type_: str) -> PartialAggregate:
    sketched = value if type_ in _SKETCHED else value.cast("string")
    return _simple(
        sf.hll_sketch_agg(sketched),
        sf.hll_union_agg,
        lambda sketch: sf.coalesce(sf.hll_sketch_estimate(sketch), sf.lit(0)),
    )


def _percentile(value: "Column", rank: "Column", type_: str) -> PartialAggregate:
    return _simple(
        sf.kll_sketch_agg_double(value.cast("double")),
        sf.kll_merge_agg_double,
        lambda sketch: sf.kll_sketch_get_quantile_double(sketch, rank).cast(type_),
    )


def _ordered(order: "Column", place: "Column | None") -> "Column":
    """Return an order in which equal values have the order of arrival."""
    if place is None:
        return order
    return sf.when(order.isNotNull(), sf.struct(order.alias("value"), place.alias("place")))


def _by(value: "Column", order: "Column", *, is_max: bool) -> PartialAggregate:
    by, extreme = (sf.max_by, sf.max) if is_max else (sf.min_by, sf.min)
    return PartialAggregate(
        (by(value, order), extreme(order)),
        lambda values: [by(values[0], values[1]), extreme(values[1])],
        lambda values: values[0],
    )


def _set(name: str, arguments: Sequence["Column"], parts: Sequence[Any]) -> PartialAggregate:
    """Distinct values; of several arguments, of those records in which none is null."""
    types = [*map(_catalog_type, parts)]
    for type_ in types:
        if inexact := _INEXACT.search(type_):
            raise NotMergeable(f"{name}(distinct {inexact[1]})")
    value, [type_, *others] = arguments[0], types
    is_hashed = not others and (type_ in _HASHED or type_.startswith("decimal"))
    if not is_hashed:
        present = reduce(and_, [argument.isNotNull() for argument in arguments])
        names = [f"v{nth}" for nth in range(len(arguments))]
        named = [each.alias(own) for each, own in zip(arguments, names, strict=True)]
        value = sf.when(present, sf.to_json(sf.struct(*named), JSON))

    def result(values: "Column") -> "Column":
        if name == "count":
            return sf.size(values).cast("bigint")
        if not is_hashed:
            schema = f"struct<v0:{_ddl(parts[0])}>"
            values = sf.transform(values, lambda text: sf.from_json(text, schema, JSON)["v0"])
        return sf.array_sort(values)

    return _simple(
        sf.collect_set(value),
        lambda sets: sf.array_distinct(sf.flatten(sf.collect_list(sets))),
        result,
    )


def _list(value: "Column", place: "Column") -> PartialAggregate:
    """Values by the place of their records."""
    placed = sf.struct(place.alias("place"), value.alias("value"))
    return _simple(
        sf.collect_list(sf.when(value.isNotNull(), placed)),
        lambda lists: sf.array_sort(sf.flatten(sf.collect_list(lists))),
        lambda items: sf.transform(items, lambda item: item["value"]),
    )


def _by_arrival(name: str, function: Any, value: "Column", place: "Column") -> PartialAggregate:
    """First or last value by the place of its record."""
    order = sf.when(value.isNotNull(), place) if function.productElement(1) else place
    return _by(value, order, is_max=name in _LASTS)
