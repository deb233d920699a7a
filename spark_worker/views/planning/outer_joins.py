"""Outer joins of two streams, as two plans: of pairs, and of records without a match.

left join on c  =  inner join on c, for the records of each batch
                +  left anti join on c with nulls for the other columns, for the records whose wait has ended
"""

from typing import Any

from spark_worker.views.planning.layers import is_join_of_streams, preserved_side
from spark_worker.views.planning.plans import Plans, children


def pairs(plans: Plans, plan: Any) -> Any:
    """Return a plan whose join of streams is an inner one."""

    def replacement(node: Any) -> Any | None:
        if is_join_of_streams(node) and preserved_side(node) is not None:
            return plans.joined(node, "inner", *children(node))
        return None

    return plans.substitute(plan, replacement)


def unmatched(plans: Plans, plan: Any) -> Any:
    """Return a plan with the rows of an outer join's records that nothing matches."""

    def replacement(node: Any) -> Any | None:
        if not is_join_of_streams(node):
            return None
        left, right = children(node)
        if preserved_side(node) == 0:
            alone = plans.joined(node, "left_anti", left, right)
            return plans.joined(node, "left_outer", alone, plans.empty(right))
        alone = plans.joined(node, "left_anti", right, left)
        return plans.joined(node, "right_outer", plans.empty(left), alone)

    return plans.substitute(plan, replacement)
