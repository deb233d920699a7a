from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="StoreRecovery")


@_attrs_define
class StoreRecovery:
    """The store to continue with, when too few are left to decide that automatically.

    Attributes:
        from_ (str): `host:port` of a store.
        accept_loss (bool): Confirms that acknowledged writes that only the lost stores had are lost.
    """

    from_: str
    accept_loss: bool

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_

        accept_loss = self.accept_loss

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
                "accept_loss": accept_loss,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        from_ = d.pop("from")

        accept_loss = d.pop("accept_loss")

        store_recovery = cls(
            from_=from_,
            accept_loss=accept_loss,
        )

        return store_recovery
