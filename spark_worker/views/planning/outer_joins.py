"""Outer joins of two streams, as two plans: of pairs, and of records without a match.

left join on c  =  inner join on c, for the records of each batch
                +  left anti join on c with nulls for the other columns, for the records whose wait has ended
"""

from collections.abc import Callable
from typing import Any

from spark_worker.views.planning.plan_node import PlanNode
from spark_worker.views.planning.plans import Plans


def pairs(plans: Plans, node: PlanNode) -> Any:
    """Return a plan whose join of streams is an inner one."""
    if node.joins_streams:
        if node.preserved_side is None:
            return node.plan
        return plans.joined(node.plan, "inner", *(child.plan for child in node.children))
    return plans.with_children(node.plan, [_below(plans, one, pairs) for one in node.children])


def unmatched(plans: Plans, node: PlanNode) -> Any:
    """Return a plan with the rows of an outer join's records that nothing matches."""
    if not node.joins_streams:
        below = [_below(plans, one, unmatched) for one in node.children]
        return plans.with_children(node.plan, below)
    join, (left, right) = node.plan, (child.plan for child in node.children)
    if node.preserved_side == 0:
        alone = plans.joined(join, "left_anti", left, right)
        return plans.joined(join, "left_outer", alone, plans.empty(right))
    alone = plans.joined(join, "left_anti", right, left)
    return plans.joined(join, "right_outer", plans.empty(left), alone)


def _below(plans: Plans, node: PlanNode, replaced: Callable[[Plans, PlanNode], Any]) -> Any:
    """Return a part of a plan, in which the join is replaced if it is there."""
    return replaced(plans, node) if node.reads_records else node.plan
