"""Store epoch: rules for detecting a store that may have lost acknowledged writes.

Every append carries the store epoch. A store that may have lost acknowledged writes gets a new
epoch, so that every log in it jumps to offsets that were never assigned (`storage.log.provisioner`):
an offset identifies the same value forever (S1). A clean restart with its own data needs no new epoch.
"""

import msgspec

REPLICATED = "replicated"
"""Replication id of a replica set: a store that is used alone after it may be a copy that was behind."""


class StoreIdentity(msgspec.Struct, frozen=True):
    """Identity of the store that Postgres last agreed with.

    `replid` is the server's replication id; `beacon` is a number written first to the store and then to
    Postgres, every few seconds. `lossless_since`: the epoch since which nothing acknowledged was lost; None if that is not known.
    """

    epoch: int
    replid: str
    beacon: int
    lossless_since: int | None = None


class StoreFacts(msgspec.Struct, frozen=True):
    """State that the store reports. An empty store has epoch 0 and beacon 0.

    `promoted`: it was a replica until now (its second replication id is set).
    `fsync_always`: it acknowledges only what is on disk.
    `restarted`: it is not the server process that was seen last.
    """

    epoch: int
    beacon: int
    replid: str
    promoted: bool
    fsync_always: bool
    restarted: bool


def needs_new_epoch(remembered: StoreIdentity, facts: StoreFacts) -> bool:
    """Return whether the store may have lost writes since `remembered` was recorded."""
    if facts.epoch == 0 or facts.epoch != remembered.epoch:
        return True  # empty, or the store of another deployment
    if remembered.replid == REPLICATED:
        return True  # one member of a replica set, perhaps not its primary
    if facts.beacon < remembered.beacon:
        return True  # restored from an older copy
    if facts.promoted and facts.replid != remembered.replid:
        return True  # a fail-over: replication is asynchronous
    return facts.restarted and not facts.fsync_always


def lossless_since(
    remembered: StoreIdentity, facts: StoreFacts, epoch: int, *, is_replicated: bool
) -> int | None:
    """Return the epoch since which nothing acknowledged was lost, once the store has `epoch`.

    `is_replicated`: the engine replicates before it acknowledges, so its own fail-over loses nothing. A store that is not
    the one remembered, or is an older copy of it, starts anew; so does one whose last epoch began before it was replicated.
    """
    if not is_replicated:
        return None
    is_same_store = (
        facts.epoch == remembered.epoch
        and facts.beacon >= remembered.beacon
        and remembered.replid != REPLICATED
    )
    since = remembered.lossless_since
    return since if is_same_store and since is not None else epoch
