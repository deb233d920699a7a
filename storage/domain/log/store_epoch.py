"""When must the store get a new epoch?

Every append carries the store epoch. A store that may have forgotten acknowledged writes gets a new
one, so that every log in it jumps to offsets that were never handed out (`storage.log.provisioner`): an offset
holds one value for ever (S1). A clean restart on its own data needs no new epoch.
"""

import msgspec


class StoreIdentity(msgspec.Struct, frozen=True):
    """What Postgres remembers of the store it last agreed with.

    `replid` is the server's replication id; `beacon` a number written to the store first and to
    Postgres after, every few seconds.
    """

    epoch: int
    replid: str
    beacon: int


class StoreFacts(msgspec.Struct, frozen=True):
    """What the store says of itself. An empty store has epoch 0 and beacon 0.

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
    """Whether the store may have lost something since `remembered` was written."""
    if facts.epoch == 0 or facts.epoch != remembered.epoch:
        return True  # empty, or another deployment's
    if facts.beacon < remembered.beacon:
        return True  # restored from an older copy
    if facts.promoted and facts.replid != remembered.replid:
        return True  # a fail-over: replication is asynchronous
    return facts.restarted and not facts.fsync_always
