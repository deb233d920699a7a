"""Authorization: which principal may do what, decided once for every protocol."""

from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import Forbidden


class Authorizer:
    """Check of a principal against its policy and its namespace.

    It looks at names only, never at whether something of that name exists: to a caller without permission, what is
    missing and what is forbidden are the same.
    """

    def authorise(self, principal: Principal, action: Action, resource: str) -> None:
        """Raise Forbidden unless the principal may do `action` on `resource`.

        `resource` is "<namespace>/<name>".
        """
        namespace, _, name = resource.partition("/")
        if namespace != principal.namespace or not principal.policy.allows(action, name):
            raise Forbidden(
                f"'{principal.name}' is not allowed to perform {action} on '{resource}'.",
                action=action.value,
                resource=resource,
            )

    def authorise_list(self, principal: Principal, action: Action) -> None:
        """Raise Forbidden unless there can be a name on which the principal may do `action`."""
        if not principal.policy.allows_any_name(action):
            raise Forbidden(
                f"'{principal.name}' is not allowed to perform {action}.", action=action.value
            )
