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
from api.aws.kinesis.errors import as_kinesis_error, translate
from api.aws.kinesis.quota_cost import quota_cost_of, throttled
from api.aws.protocol.service import Service, operations_by_name

KINESIS = Service(
    target="Kinesis_20131202",
    json_type="application/x-amz-json-1.1",
    operations=operations_by_name(
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
    ),
    translate=translate,
    quota_cost_of=quota_cost_of,
    throttled=throttled,
    adapt_error=as_kinesis_error,
    times=frozenset(
        {
            "ApproximateArrivalTimestamp",
            "ConsumerCreationTimestamp",
            "StreamCreationTimestamp",
            "StartedAt",
            "EndedAt",
            "EarliestAllowedEndAt",
        }
    ),
)
