"""Policies: matching of grants, precedence of deny, and delegation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.access.authorization import Authorizer
from storage.domain.access.permissions import (
    EVERYTHING,
    GRANTS_OF,
    NOTHING,
    Action,
    Effect,
    Grant,
    Policy,
    Principal,
    Role,
)
from storage.domain.errors import Forbidden

GLOBS = st.sampled_from(["*", "orders", "orders-*", "orders-e?", "*-eu", "o*-eu", "[a]", ""])
NAMES = st.sampled_from(["orders", "orders-eu", "orders-us", "paid-eu", "a", "[a]", "o-eu", "*"])
ACTIONS = st.sampled_from(["*", "queue:*", "queue:send", "*:list", "admin:keys", "stream:rea?"])
GRANTS = st.lists(
    st.builds(
        Grant,
        st.sampled_from(Effect),
        st.lists(ACTIONS, min_size=1, max_size=2).map(tuple),
        st.lists(GLOBS, min_size=1, max_size=2).map(tuple),
    ),
    max_size=4,
).map(tuple)


def allow(*actions: str, on: str = "*") -> Grant:
    return Grant(Effect.ALLOW, actions, (on,))


def deny(*actions: str, on: str = "*") -> Grant:
    return Grant(Effect.DENY, actions, (on,))


def test_ungranted_action_is_denied():
    policy = Policy((allow("queue:send", on="orders-*"),))

    assert policy.allows(Action.QUEUE_SEND, "orders-eu")
    assert not policy.allows(Action.QUEUE_SEND, "invoices")
    assert not policy.allows(Action.QUEUE_RECEIVE, "orders-eu")


def test_deny_takes_precedence_in_any_order():
    grants = (allow("queue:*"), deny("queue:purge", on="orders*"))

    for some in (grants, grants[::-1]):
        assert not Policy(some).allows(Action.QUEUE_PURGE, "orders-eu")
        assert Policy(some).allows(Action.QUEUE_PURGE, "invoices")


def test_glob_is_not_a_regular_expression_or_character_class():
    policy = Policy((allow("queue:send", on="[a]"),))

    assert not policy.allows(Action.QUEUE_SEND, "a")
    assert not Policy((allow("queue:send", on="a.c"),)).allows(Action.QUEUE_SEND, "abc")


def test_resource_names_are_case_sensitive():
    assert not Policy((allow("queue:send", on="orders"),)).allows(Action.QUEUE_SEND, "Orders")


@pytest.mark.parametrize("action", Action)
def test_viewer_lists_and_operator_manages_every_noun(action):
    viewer, operator = (Policy((GRANTS_OF[role],)) for role in (Role.VIEWER, Role.OPERATOR))

    assert viewer.allows(action, "a") == (action.verb == "list" or action is Action.METRICS_READ)
    assert action is Action.STORE_MANAGE or operator.allows(action, "a") >= (
        action.verb in ("list", "manage")
    )


@pytest.mark.parametrize("role", Role)
def test_only_admin_role_has_keys_audit_namespaces_and_stores(role):
    policy = Policy((GRANTS_OF[role],))

    for action in (
        Action.ADMIN_KEYS,
        Action.ADMIN_NAMESPACES,
        Action.AUDIT_READ,
        Action.STORE_READ,
        Action.STORE_MANAGE,
    ):
        assert policy.allows(action, "any") is (role is Role.ADMIN)


def test_viewer_cannot_read_contents():
    viewer = Policy((GRANTS_OF[Role.VIEWER],))

    for action in (Action.QUEUE_PEEK, Action.QUEUE_RECEIVE, Action.STREAM_READ):
        assert not viewer.allows(action, "orders")


@given(GRANTS, NAMES)
def test_cached_decision_equals_uncached(grants, name):
    policy = Policy(grants)

    for action in Action:
        assert policy.allows(action, name) == policy.allows(action, name)
        assert policy.allows(action, name) == Policy(grants).allows(action, name)


@given(GRANTS, NAMES)
def test_action_allowed_on_name_is_allowed_somewhere(grants, name):
    policy = Policy(grants)

    for action in Action:
        assert policy.allows_any_name(action) or not policy.allows(action, name)


@given(GRANTS, GRANTS, NAMES)
def test_covered_grants_allow_no_more_than_the_policy(mine, handed_on, name):
    policy = Policy(mine)

    if policy.covers(handed_on):
        theirs = Policy(handed_on)
        for action in Action:
            assert policy.allows(action, name) or not theirs.allows(action, name)


@given(GRANTS)
def test_administrator_may_delegate_any_grants(grants):
    assert EVERYTHING.covers(grants)
    assert NOTHING.covers(())


def test_other_namespace_is_forbidden_under_any_policy():
    principal = Principal("ada", "tenant-a", EVERYTHING)

    with pytest.raises(Forbidden):
        Authorizer().authorise(principal, Action.QUEUE_SEND, "tenant-b/orders")
    Authorizer().authorise(principal, Action.QUEUE_SEND, "tenant-a/orders")
