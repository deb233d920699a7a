"""Settlements with replies: a delivery is acknowledged once its request has the reply.

A crash between the two repeats the work, and the second reply is refused.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from msgspec.structs import replace

from storage.domain.errors import ErrorCode, MillstreamError
from storage.domain.names import QueueName
from storage.domain.queues.message import Settled, Settlement
from storage.domain.requests.reply import ReplyingSettlement
from storage.queues.engine import Queues
from storage.requests.engine import Requests

_FINAL = frozenset({ErrorCode.REPLY_TAKEN, ErrorCode.REPLY_TOO_LATE})
"""Refusals after which no reply can be accepted: the delivery is acknowledged nevertheless."""


def settle(
    requests: Requests, queues: Queues, name: QueueName, settlements: Sequence[Settlement]
) -> Awaitable[list[Settled]]:
    """Put the replies, if any, then settle; return one result for each, in order.

    A delivery is not settled if its reply failed in another way than that none is accepted any more.
    """
    if any(isinstance(one, ReplyingSettlement) for one in settlements):
        return _settle_with_replies(requests, queues, name, settlements)
    return queues.settle(name, settlements)


async def _settle_with_replies(
    requests: Requests, queues: Queues, name: QueueName, settlements: Sequence[Settlement]
) -> list[Settled]:
    codes = await asyncio.gather(*(_reply(requests, name, one) for one in settlements))
    accepted = [
        settlement
        for settlement, code in zip(settlements, codes, strict=True)
        if code is None or code in _FINAL
    ]
    settled = iter(await queues.settle(name, accepted) if accepted else ())
    results: list[Settled] = []
    for code in codes:
        if code is None:
            results.append(next(settled))
        elif code in _FINAL:
            results.append(replace(next(settled), reply_error=code))
        else:
            results.append(Settled(code))
    return results


async def _reply(requests: Requests, name: QueueName, settlement: Settlement) -> ErrorCode | None:
    """Put the reply of a settlement, if it has one; return why it was refused."""
    if not isinstance(settlement, ReplyingSettlement):
        return None
    request = settlement.request_in(name.namespace)
    try:
        await requests.reply(request, settlement.reply, key=settlement.receipt_handle)
    except MillstreamError as error:
        return error.code
    return None
