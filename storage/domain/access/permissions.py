"""Principals, actions, and policies: authorization of a call.

    key, pair, token or ticket ──▶ Principal ── policy ──▶ grants: allow or deny · actions · names

A policy allows what some grant of it allows and none denies; everything else is denied.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from re import Pattern
from re import compile as compile_pattern

import msgspec

from storage.domain.names import DEFAULT_NAMESPACE, QUEUE_PREFIX, STREAM_PREFIX
from storage.domain.quotas import Rates

_DECISIONS_CACHED_MAX = 4096  # decisions of one policy


class Action(StrEnum):
    """Every action that is authorized, with one name for all APIs.

    `list` is to see that a resource exists, its configuration and its counts; `peek` and `read` show content. `topic:subscribe`
    is to create and change routes of a topic.
    """

    QUEUE_SEND = "queue:send"
    QUEUE_RECEIVE = "queue:receive"
    QUEUE_PEEK = "queue:peek"
    QUEUE_LIST = "queue:list"
    QUEUE_PURGE = "queue:purge"
    QUEUE_REDRIVE = "queue:redrive"
    QUEUE_MANAGE = "queue:manage"
    STREAM_PUT = "stream:put"
    STREAM_READ = "stream:read"
    STREAM_LIST = "stream:list"
    STREAM_MANAGE = "stream:manage"
    TOPIC_PUBLISH = "topic:publish"
    TOPIC_READ = "topic:read"
    TOPIC_LIST = "topic:list"
    TOPIC_SUBSCRIBE = "topic:subscribe"
    TOPIC_MANAGE = "topic:manage"
    GROUP_COMMIT = "group:commit"
    GROUP_LIST = "group:list"
    GROUP_RESET = "group:reset"
    GROUP_MANAGE = "group:manage"
    REPLAY_RUN = "replay:run"
    REPLAY_LIST = "replay:list"
    JOB_LIST = "job:list"
    JOB_MANAGE = "job:manage"
    WEBHOOK_LIST = "webhook:list"
    WEBHOOK_MANAGE = "webhook:manage"
    SOURCE_LIST = "source:list"
    SOURCE_MANAGE = "source:manage"
    VIEW_READ = "view:read"
    VIEW_LIST = "view:list"
    VIEW_MANAGE = "view:manage"
    QUERY_RUN = "query:run"
    MIRROR_LIST = "mirror:list"
    MIRROR_MANAGE = "mirror:manage"
    SOCKET_LIST = "socket:list"
    SOCKET_CLOSE = "socket:close"
    ALERT_LIST = "alert:list"
    ALERT_MANAGE = "alert:manage"
    STORE_READ = "store:read"
    STORE_MANAGE = "store:manage"
    METRICS_READ = "metrics:read"
    AUDIT_READ = "audit:read"
    ADMIN_KEYS = "admin:keys"
    ADMIN_NAMESPACES = "admin:namespaces"

    @property
    def noun(self) -> str:
        """The noun that it is about, as in `queue`."""
        return self.value.partition(":")[0]

    @property
    def verb(self) -> str:
        """The verb that it permits, as in `send`."""
        return self.value.partition(":")[2]


_OF_SOURCE: Mapping[str, Mapping[Action, Action]] = {
    STREAM_PREFIX: {
        Action.TOPIC_LIST: Action.STREAM_LIST,
        Action.TOPIC_READ: Action.STREAM_READ,
        Action.TOPIC_SUBSCRIBE: Action.STREAM_READ,
    },
    QUEUE_PREFIX: {
        Action.TOPIC_LIST: Action.QUEUE_LIST,
        Action.TOPIC_READ: Action.QUEUE_PEEK,
        Action.TOPIC_SUBSCRIBE: Action.QUEUE_RECEIVE,
        Action.TOPIC_MANAGE: Action.QUEUE_RECEIVE,
    },
}
"""Actions on the stream or queue that is a topic's source, which the actions on the topic require too."""

_OF_NOUN = {
    noun: tuple(action for action in Action if action.noun == noun)
    for noun in {action.noun for action in Action}
}


class Effect(StrEnum):
    """Effect of a grant on the actions and names it matches."""

    ALLOW = "allow"
    DENY = "deny"


class Grant(msgspec.Struct, frozen=True):
    """Permission or denial of actions on names of its holder's namespace.

    `actions` and `resources` are globs, where `*` stands for anything and `?` for one character: `queue:*`,
    `orders-*`. An effect on a second resource needs its own permission: a replay into a queue needs `queue:send`
    there.
    """

    effect: Effect
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ("*",)

    def speaks_of(self, action: Action, name: str) -> bool:
        """Return whether the grant matches `action` on `name`."""
        return self.names_action(action) and any(_matches(glob, name) for glob in self.resources)

    def names_action(self, action: Action) -> bool:
        """Return whether the grant matches `action`, on any name."""
        return any(_matches(glob, action.value) for glob in self.actions)


_OF_ADMINISTRATORS = frozenset({Action.STORE_READ, Action.STORE_MANAGE})
"""Actions on the stores, which all namespaces share."""


class Role(StrEnum):
    """Named set of grants."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


def _allow(*actions: str) -> Grant:
    return Grant(Effect.ALLOW, actions)


def _of_verb(verb: str) -> tuple[str, ...]:
    return tuple(
        action.value
        for action in Action
        if action.verb == verb and action not in _OF_ADMINISTRATORS
    )


GRANTS_OF: dict[Role, Grant] = {
    Role.VIEWER: _allow(*_of_verb("list"), "metrics:read"),
    Role.OPERATOR: _allow(
        *_of_verb("list"),
        *_of_verb("manage"),
        *("metrics:read", "queue:peek", "queue:purge", "queue:redrive"),
        *("stream:read", "topic:read", "topic:subscribe", "view:read", "group:*"),
        *("replay:run", "query:run", "socket:close"),
    ),
    Role.PRODUCER: _allow(
        *("queue:send", "queue:list", "stream:put", "stream:list", "topic:publish", "topic:list")
    ),
    Role.CONSUMER: _allow(
        *(
            "queue:receive",
            "queue:list",
            "stream:read",
            "stream:list",
            "group:commit",
            "group:list",
        ),
        *("topic:read", "topic:list", "view:read", "view:list"),
    ),
    Role.ADMIN: _allow("*"),
}
"""Grants of each role, on every name of its namespace. Every `list` is for viewers, every `manage` for operators, except those of the stores."""


class Policy:
    """All grants of a principal, and a cache of its decisions."""

    def __init__(self, grants: tuple[Grant, ...]) -> None:
        self.grants = grants
        cached = lru_cache(_DECISIONS_CACHED_MAX)
        self.allows: Callable[[Action, str], bool] = cached(self._allows)
        """Return whether an action is allowed on a name; a denial takes precedence."""
        self.allows_something: Callable[[str, str], bool] = cached(self._allows_something)
        """Return whether any action of a noun, such as `queue`, is allowed on a name.

        If so, the caller may learn that it exists.
        """

    def _allows_something(self, noun: str, name: str) -> bool:
        return any(self.allows(action, name) for action in _OF_NOUN.get(noun, ()))

    def allows_any_name(self, action: Action) -> bool:
        """Return whether `action` is allowed on any name, so that listing names makes sense."""
        about = [grant for grant in self.grants if grant.names_action(action)]
        everywhere_denied = any(
            grant.effect is Effect.DENY and "*" in grant.resources for grant in about
        )
        return not everywhere_denied and any(grant.effect is Effect.ALLOW for grant in about)

    def covers(self, grants: tuple[Grant, ...]) -> bool:
        """Return whether `grants` may be delegated: they allow nothing that is denied here.

        Conservative: a denial here counts unless it is delegated as well.
        """
        denied = [grant for grant in self.grants if grant.effect is Effect.DENY]
        if any(grant not in grants for grant in denied):
            return False
        return all(
            self._covers_one(action, resource)
            for grant in grants
            if grant.effect is Effect.ALLOW
            for action in Action
            if grant.names_action(action)
            for resource in grant.resources
        )

    def _covers_one(self, action: Action, resource: str) -> bool:
        return any(
            grant.effect is Effect.ALLOW
            and grant.names_action(action)
            and any(_includes(glob, resource) for glob in grant.resources)
            for grant in self.grants
        )

    def _allows(self, action: Action, name: str) -> bool:
        effects = {grant.effect for grant in self.grants if grant.speaks_of(action, name)}
        if effects != {Effect.ALLOW}:
            return False
        return all(
            not name.startswith(prefix)
            or action not in actions
            or self.allows(actions[action], name.removeprefix(prefix))
            for prefix, actions in _OF_SOURCE.items()
        )


EVERYTHING = Policy((GRANTS_OF[Role.ADMIN],))
NOTHING = Policy(())


class Principal(msgspec.Struct, frozen=True, eq=False):
    """A caller, within the namespace it acts in.

    `credential` is the id of its credential, which can be revoked. `everywhere`: it may act in any namespace and
    manages them. `expires_ms`: expiry of its credential, in milliseconds since 1970; 0: never. `rates`: those of
    the credential itself.
    """

    name: str
    namespace: str = DEFAULT_NAMESPACE
    policy: Policy = NOTHING
    credential: str = ""
    all_namespaces: bool = False
    expires_ms: int = 0
    rates: Rates | None = None


ANONYMOUS = Principal("nobody")
"""A principal without permissions."""

LOCAL_ADMINISTRATOR = Principal("local-administrator", policy=EVERYTHING, all_namespaces=True)
"""The principal of every caller in open mode, which listens on loopback only."""


def _includes(glob: str, other: str) -> bool:
    """Return whether a glob matches, for certain, everything that another one matches."""
    if glob in ("*", other):
        return True
    fixed, star, rest = glob.partition("*")
    simple = star and not rest and "?" not in fixed
    return bool(simple) and other.startswith(fixed)


def _matches(glob: str, name: str) -> bool:
    return glob in ("*", name) or _pattern(glob).match(name) is not None


@lru_cache(maxsize=_DECISIONS_CACHED_MAX)
def _pattern(glob: str) -> Pattern[str]:
    return compile_pattern(translate(glob.replace("[", "[[]")))
