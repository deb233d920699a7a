"""The SQS service: all 23 operations."""

from api.aws.protocol.service import Service, operations_by_name
from api.aws.sqs.actions import (
    change_visibility,
    dead_letters,
    delete,
    move_tasks,
    permissions,
    queue_attributes,
    queues,
    receive,
    send,
    tags,
)
from api.aws.sqs.errors import translate
from api.aws.sqs.queues.urls import check_address
from api.aws.sqs.quota_cost import quota_cost_of, throttled

SQS = Service(
    target="AmazonSQS",
    json_type="application/x-amz-json-1.0",
    namespace="http://queue.amazonaws.com/doc/2012-11-05/",
    path_parameter="QueueUrl",
    check_address=check_address,
    root_operations=frozenset({"CreateQueue", "ListQueues"}),
    operations=operations_by_name(
        send.operations,
        receive.operations,
        delete.operations,
        change_visibility.operations,
        queues.operations,
        queue_attributes.operations,
        tags.operations,
        permissions.operations,
        dead_letters.operations,
        move_tasks.operations,
    ),
    translate=translate,
    quota_cost_of=quota_cost_of,
    throttled=throttled,
)
