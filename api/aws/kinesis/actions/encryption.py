"""StartStreamEncryption and StopStreamEncryption.

The key is stored and returned; nothing is encrypted with it.
"""

from api.aws.kinesis import metadata
from api.aws.kinesis.call_helpers import now_ms, process_state, stream_of
from api.aws.kinesis.errors import INVALID_ARGUMENT, refuse
from api.aws.kinesis.metadata import annotated
from api.aws.kinesis.shapes import KMS, EncryptionTypeIn, KeyIdIn, StreamIdentity
from api.aws.protocol.service import AwsCall, Operations
from storage.domain.access.permissions import Action

operations = Operations()

CHANGES_A_DAY = 25  # if Amazon's limits are enforced


class Encryption(StreamIdentity):
    """A key."""

    encryption_type: EncryptionTypeIn = None
    key_id: KeyIdIn = None


class StartEncryption(Encryption):
    """The key to use."""


class StopEncryption(Encryption):
    """The key to stop using."""


@operations.add("StartStreamEncryption", StartEncryption, Action.STREAM_MANAGE)
async def start_encryption(call: AwsCall[StartEncryption]) -> None:
    """Store the key's name; nothing is encrypted with it."""
    await _encrypt(call, str(call.request.key_id))


@operations.add("StopStreamEncryption", StopEncryption, Action.STREAM_MANAGE)
async def stop_encryption(call: AwsCall[StopEncryption]) -> None:
    """Remove the key's name."""
    await _encrypt(call, None)


async def _encrypt(
    call: AwsCall[StartEncryption] | AwsCall[StopEncryption], key: str | None
) -> None:
    request = call.request
    stream = await stream_of(call, request.stream_name, request.stream_arn)
    if request.encryption_type != KMS:
        refuse(INVALID_ARGUMENT, "EncryptionType must be KMS.")
    if "\0" in str(request.key_id):
        refuse(INVALID_ARGUMENT, "KeyId contains an invalid character.")
    now_s = now_ms(call) / 1_000
    process_state(call).shard_limits.daily(
        "StreamEncryption", stream.stream_id, CHANGES_A_DAY, now_s
    )
    await call.storage.catalog.change_stream(
        stream.name, lambda spec: annotated(spec, metadata.KEY, key)
    )
