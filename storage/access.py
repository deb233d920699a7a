"""Who may do what: decided here, once, for every door."""

from storage.domain.access import LOCAL_ADMINISTRATOR, Action, Principal
from storage.domain.errors import Forbidden


class Access:
    """The rule of open mode, which listens on loopback only: the local administrator may do everything.

    Nobody else has credentials yet, so nobody else may do anything.
    """

    def authorise(self, principal: Principal, action: Action, resource: str) -> None:
        """Raise Forbidden unless the principal may do `action` on `resource`, a name or a pattern."""
        if principal != LOCAL_ADMINISTRATOR:
            raise Forbidden(
                f"'{principal.name}' may not do {action} on '{resource}'.",
                action=action.value,
                resource=resource,
            )
