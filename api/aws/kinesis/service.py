"""The Kinesis Data Streams service: streams, shards, records and their readers."""

from api.aws.kinesis.actions import (
    account,
    configuration,
    consumers,
    encryption,
    get,
    monitoring,
    policies,
    put,
    shards,
    streams,
    subscribe,
    tags,
)
from api.aws.kinesis.errors import spell, translate
from api.aws.kinesis.quota_cost import load_of, throttled
from api.aws.protocol.service import Service

KINESIS = Service(
    target="Kinesis_20131202",
    json_type="application/x-amz-json-1.1",
    operations=[
        put.operations,
        get.operations,
        subscribe.operations,
        consumers.operations,
        streams.operations,
        shards.operations,
        configuration.operations,
        monitoring.operations,
        encryption.operations,
        tags.operations,
        policies.operations,
        account.operations,
    ],
    translate=translate,
    load_of=load_of,
    throttled=throttled,
    spell=spell,
    times=(
        "ApproximateArrivalTimestamp",
        "ConsumerCreationTimestamp",
        "StreamCreationTimestamp",
        "StartedAt",
        "EndedAt",
        "EarliestAllowedEndAt",
    ),
)
