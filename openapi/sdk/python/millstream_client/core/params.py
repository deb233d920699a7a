"""Keyword arguments of configurations, as type checkers and editors see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Required, TypedDict


class BackoffConfigParams(TypedDict, total=False):
    """Delay after a failure for which the consumer sets none; n is the number of failures.

    fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of `delays_seconds`,
    or its last. The delay is capped at `max_seconds`, then the jitter is applied: full draws from 0 to the delay, equal
    from half the delay to the delay."""

    kind: Literal["fixed", "linear", "exponential", "list"]
    initial_seconds: float
    multiplier: float
    max_seconds: float
    delays_seconds: Sequence[float]
    jitter: Literal["none", "full", "equal"]


class BookmarkNameParams(TypedDict, total=False):
    """A bookmark of a consumer group that reads the source."""

    group: Required[str]
    name: Required[str]


class BoundConfigParams(TypedDict, total=False):
    """A bound of the replayed range: exactly one of the three."""

    offsets: Mapping[str, int] | None
    """Offsets by shard; shards that are not listed are not bounded."""
    time: str | datetime | None
    """Start with the first record that arrived at or after this time."""
    bookmark: BookmarkNameParams | None


class ConditionConfigParams(TypedDict, total=False):
    """A condition on a member of a JSON body: exactly one of `equal_to` and `exists`."""

    path: Required[str]
    """A JSON Pointer, such as /user/id."""
    equal_to: Any
    """Any JSON value. `equals`, its former name, is accepted too."""
    exists: bool | None


class CredentialsConfigParams(TypedDict, total=False):
    """Credentials of deliveries. For an API key, or a user and password, a header is enough."""

    oauth: Required[OauthClientConfigParams]


class DeadLettersConfigParams(TypedDict, total=False):
    """The dead-letter queue, or the topic that dead letters are published to.

    A message moves there at the receive after `receives_max` unsuccessful ones. Exactly one of `queue` and `topic` is given."""

    queue: str | None
    topic: str | None
    """Dead letters are published with the name of the queue as their subject, and headers that state the reason."""
    receives_max: Required[int]


class FilterConfigParams(TypedDict, total=False):
    """Records to replay: those that match all conditions."""

    keys: Sequence[str] | None
    """Records with one of these keys. Default: all keys."""
    headers: Mapping[str, str]
    body: Sequence[ConditionConfigParams]
    sample: SampleConfigParams | None
    match: Any
    """A match, or a list of matches of which any selects a record, as a route of a topic has it."""


class GroupConfigParams(TypedDict, total=False):
    """The complete configuration of a group. Stream, kind and start are immutable."""

    kind: Literal["ordered", "simple"]
    """`simple`: no members; the group stores offsets only."""
    start: Literal["earliest", "latest", "time"]
    """Start position of a group that has no committed offset."""
    start_time: str | datetime | None
    """With `time`: start with the first record that arrived at or after this time."""
    session_timeout_seconds: float
    """Members without a heartbeat for this long are removed."""
    static_timeout_seconds: float
    """Time without a heartbeat after which a member with an `instance_id` is removed."""
    revoke_timeout_seconds: float
    """A revoked shard that is not released within this time is reassigned."""


class GroupWeightConfigParams(TypedDict, total=False):
    """Number of messages of a group that a standard queue delivers per turn (other groups: 1).

    `match` is a group name, or a prefix followed by `*`; the first match in the list applies."""

    match: Required[str]
    weight: Required[int]


class HeaderTransformConfigParams(TypedDict, total=False):
    """Headers to remove, and then headers to set."""

    set: Mapping[str, str]
    remove: Sequence[str]


class OauthClientConfigParams(TypedDict, total=False):
    """OAuth 2.0 client credentials (RFC 6749, section 4.4).

    Each delivery has the header `Authorization: Bearer` with an access token, which is fetched from `token_url` with a POST and
    used until shortly before its end."""

    token_url: Required[str]
    """An https URL, for which the rules of webhooks' URLs hold."""
    client_id: Required[str]
    client_secret: str | None
    """Stored encrypted, and shown as `(secret)`. If it is omitted, or sent so, it is unchanged; required with another `token_url` or `client_id`."""
    scope: str
    """Names of scopes, with one space between."""
    parameters: Mapping[str, str]
    """More parameters of the token request, such as `audience`. They are shown, so they must not be secret."""
    client_auth: Literal["basic", "body"]
    """Place of the client's id and secret in the token request. `basic`: its Authorization header. `body`: its form."""


class PacingConfigParams(TypedDict, total=False):
    """Speed of the whole replay."""

    records_per_second: float | None
    bytes_per_second: float | None
    speed: float | None
    """Multiple of the original arrival rate."""
    lag_records_max: int | None
    """Wait while the backlog of the target's consumers exceeds this."""


class QueryConfigParams(TypedDict, total=False):
    """A query, which is run once."""

    rows_max: int
    """Rows to return at most. If there are more, `truncated` is true."""
    seconds_max: float
    """Time after which the query is ended without rows."""


class QueryRelationConfigParams(TypedDict, total=False):
    """Relation of a query: a stream, a table or a view. Exactly one of the three is given."""

    stream: str | None
    """Stream whose records are read, also those of the archive."""
    table: str | None
    """Stream that is read as a table: the newest record of each key, with `key`, `value` and the `columns`. A record with empty or null data deletes its key."""
    view: str | None
    """View whose rows are read."""
    columns: str
    """Columns of the records' JSON data, such as `page string, ms bigint`. Each record also has `key`, `value`, `data`, `headers`, `event_time`, `arrival_time`, `shard` and `offset`."""
    event_time: str
    """Column with the event time, of type timestamp. Without one it is the producer's event time, or else the time of arrival."""
    start: Literal["earliest", "latest", "time"]
    """First record: `earliest`, or `time`."""
    start_time: str | datetime | None
    """With `time`: the first record that arrived then or later."""
    end_time: str | datetime | None
    """Only records that arrived before; null: all that there are now."""
    on_bad: Literal["null", "skip"]
    """Records whose data is not JSON of the columns: `null` for the columns that cannot be read, or `skip` the record."""


class QueueConfigParams(TypedDict, total=False):
    """The complete configuration of a queue; omitted fields take their default."""

    type: Literal["standard", "fifo"]
    """Immutable."""
    partitions: int | None
    """Number of logs that share the queue's messages; more than one uses several cores or stores. null: as many as it has, 1 for a new queue. Immutable for a FIFO queue."""
    visibility_timeout_seconds: float
    delay_seconds: float
    ttl_seconds: float | None
    """Time to live of a message; null: the retention."""
    retention_seconds: float
    dead_letter_retention_seconds: float
    message_bytes_max: int
    attempts_max: int | None
    """null: no limit."""
    receive_wait_seconds: float
    """Default wait time of receives that specify none."""
    in_flight_max: int
    deduplicate_by_content: bool
    dedup_scope: Literal["queue", "group"]
    dead_letters: DeadLettersConfigParams | None
    redrive_allow: RedriveAllowConfigParams
    backoff: BackoffConfigParams | None
    paused: bool | None
    """Replaced by `PUT` and `DELETE …/pause`."""
    messages_max: int | None
    """Maximum number of messages; null: unlimited."""
    bytes_max: int | None
    """Maximum size, counted as `bytes_held`."""
    overflow: Literal["reject", "drop_oldest", "dead_letter"]
    on_poison: Literal["skip", "block", "park_group"]
    group_weights: Sequence[GroupWeightConfigParams]
    stream_view: bool
    """Sent messages can also be read as a stream with the queue's name."""
    archive: bool
    """Archive the stream view to Parquet, if the deployment has an archive."""
    history: bool
    """Record each state change of a message, for a limited time."""
    expires_after_idle_seconds: float | None
    """Delete the queue with its messages when it had no sends, receives and waiting receivers for this time; null: never. At least 60."""
    tags: Mapping[str, str]
    """Up to 50 user-defined tags."""


class QueuePatchParams(TypedDict, total=False):
    """Changes to a queue (a JSON Merge Patch); null resets a field to its default.

    Only `attempts_max: null` means no limit, as it does elsewhere, and `partitions: null` as many as the queue has."""

    partitions: int | None
    visibility_timeout_seconds: float | None
    delay_seconds: float | None
    ttl_seconds: float | None
    retention_seconds: float | None
    dead_letter_retention_seconds: float | None
    message_bytes_max: int | None
    attempts_max: int | None
    receive_wait_seconds: float | None
    in_flight_max: int | None
    deduplicate_by_content: bool | None
    dedup_scope: Literal["queue", "group"] | None
    dead_letters: DeadLettersConfigParams | None
    redrive_allow: RedriveAllowConfigParams | None
    backoff: BackoffConfigParams | None
    paused: bool | None
    """Replaced by `PUT` and `DELETE …/pause`."""
    messages_max: int | None
    bytes_max: int | None
    overflow: Literal["reject", "drop_oldest", "dead_letter"] | None
    on_poison: Literal["skip", "block", "park_group"] | None
    group_weights: Sequence[GroupWeightConfigParams] | None
    stream_view: bool | None
    archive: bool | None
    history: bool | None
    expires_after_idle_seconds: float | None
    tags: Mapping[str, str | None] | None


class RedriveAllowConfigParams(TypedDict, total=False):
    """Queues that may use this one as their dead-letter queue.

    `sources` applies to `by_queue`."""

    permission: Literal["allow_all", "deny_all", "by_queue"]
    sources: Sequence[str]


class RedriveConfigParams(TypedDict, total=False):
    """Dead letters to redrive: those that match all given conditions; default: all of them."""

    reason: str
    group: str
    messages: Sequence[str] | None
    """Message ids or offsets. Default: all messages."""
    messages_max: int | None
    """Cannot be combined with `per_second`."""
    per_second: int | None
    """Messages per second; runs in the background as a move that can be cancelled."""


class ReplayConfigParams(TypedDict, total=False):
    """A replay to start."""

    shards: Sequence[int] | None
    from_: BoundConfigParams | None
    to: BoundConfigParams | None
    """Default: the end of the source when the replay starts."""
    filter: FilterConfigParams
    order: Literal["shard", "key", "time", "none"]
    pacing: PacingConfigParams
    max_records: int | None
    allow_same_stream: bool
    exact: bool
    """In a dry run: count records exactly instead of estimating."""


class RouteConfigParams(TypedDict, total=False):
    """The complete configuration of a route; omitted fields take their default."""

    transform: TransformConfigParams | None
    format: Literal["body", "envelope", "cloudevents", "cloudevents_binary"]
    """`body`: the body as it is. `envelope`: JSON with everything that is known of the message. `cloudevents`: CloudEvents 1.0 in JSON. `cloudevents_binary`: `ce-` headers beside the body."""
    key: Any
    """Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON Pointer such as `/body/customer`, or `{"constant": "x"}`. null: the key of the message."""
    delay_seconds: float
    """Of messages in a standard queue, or for a URL."""
    ttl_seconds: float
    """Of messages in a queue, or for a URL; 0: the queue's default."""
    on_failure: Literal["wait", "dead_letter", "drop"]
    """Handling of messages while the target does not exist. `wait`: they wait in the topic's log, up to its retention. `dead_letter`: they go to the dead-letter queue. `drop`: they are counted as dropped."""
    dead_letter_queue: str | None
    """Queue for messages that the target never accepts: too large, without a group for a FIFO queue, or without a value that a strict transform needs. null: they are counted as dropped."""
    mode: Literal["live", "shadow"]
    """`live`: messages are delivered. `shadow`: they are counted, to try a match; publishers and routes of the `unmatched` ignore the route."""
    start: Literal["earliest", "latest", "time"]
    """Of a new route, immutable. `latest`: it takes messages that are accepted from now on. `earliest`, `time`: also those before that match and that the topic still has, each once."""
    start_time: str | datetime | None
    """With `time`: start with the first message that was accepted at or after this time."""
    tags: Mapping[str, str]
    """Up to 50 user-defined tags."""


class RoutePatchParams(TypedDict, total=False):
    """Changes to a route (a JSON Merge Patch); null resets a field to its default.

    `match`, `target`, `transform` and `key` are replaced as a whole."""

    match: Any
    target: RouteTargetConfigParams | None
    transform: TransformConfigParams | None
    format: Literal["body", "envelope", "cloudevents", "cloudevents_binary"] | None
    key: Any
    """Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON Pointer such as `/body/customer`, or `{"constant": "x"}`. null: the key of the message."""
    delay_seconds: float | None
    ttl_seconds: float | None
    dead_letter_queue: str | None
    on_failure: Literal["wait", "dead_letter", "drop"] | None
    mode: Literal["live", "shadow"] | None
    tags: Mapping[str, str | None] | None


class RouteTargetConfigParams(TypedDict, total=False):
    """Queue, stream, topic, spread or URL that receives the messages. Exactly one is given.

    Only a spread has `by`. The other fields are those of a webhook, and only a URL has them."""

    queue: str | None
    stream: str | None
    topic: str | None
    """Another topic, whose routes match the message again. A message passes at most 8 topics; a route that leads back to its topic is refused with `route_cycle`."""
    url: str | None
    """An https URL that messages are posted to, signed, as by a webhook. They wait in a queue of the route's own; the queue and the webhook are named `route:<topic>.<route>`, or `route:<topic>:<route>` if the topic's name has a dot."""
    ordered: bool | None
    """Of a URL. Post the messages of one key one after another, in order: each when the one before was delivered or dead-lettered. Messages need a key. Immutable; null: false."""
    spread: Sequence[SpreadMemberConfigParams] | None
    """2 to 32 queues, streams or topics, of which each message goes to one, by consistent hashing: a new member takes messages from the others alone, and those of a removed one go to all others."""
    by: Literal["key", "subject", "random"] | None
    """Of a spread. `key`: copies with one key, as `key` makes it, go to one member. `subject`: messages of one subject do. `random`: by the place of the message in the topic, as one without a key or subject. null: `key`."""
    headers: Mapping[str, str] | None
    """Of a URL. Headers sent with each delivery. Values are stored encrypted and shown as `(secret)`, which keeps a value if it is sent; if omitted, all headers are unchanged."""
    credentials: CredentialsConfigParams | None
    """Of a URL. OAuth client with whose access tokens messages are posted."""
    timeout_seconds: float | None
    """Of a URL. Timeout for the complete response, 0.1 to 120 seconds; null: 15."""
    rate: float | None
    """Of a URL. Maximum deliveries per second; null: no limit."""
    in_flight_max: int | None
    """Of a URL. Maximum number of concurrent deliveries; null: 10."""
    retry_seconds: Sequence[float] | None
    """Of a URL. Delays after the first failed attempt, the second, and so on, each ±10 %, after which a message is dead-lettered in the route's queue; null: nine delays, of three days together."""
    disable_after_seconds: float | None
    """Of a URL. Period of consecutive failures after which the webhook is disabled; null: 432000."""
    log_retention_seconds: float | None
    """Of a URL. Time that the log keeps a delivery after its last attempt; null: 259200."""


class SampleConfigParams(TypedDict, total=False):
    """A sample that is drawn the same way each time."""

    fraction: Required[float]
    by: Literal["key", "offset"]


class SourceConfigParams(TypedDict, total=False):
    """The complete configuration of a source."""

    dedup_seconds: float
    """Period in which an event that is sent again is recognized by its id."""


class SourceIntoParams(TypedDict, total=False):
    """Queue or stream that receives the events."""

    queue: str | None
    stream: str | None
    key: str | None
    """JSON Pointer into the body, such as `/data/customer`. Its value is the record key, or in a queue the message group."""


class SourceWebhookParams(TypedDict, total=False):
    """Provider of the events, and how its requests are verified."""

    provider: Required[Literal["standard_webhooks", "stripe", "github", "slack", "hmac"]]
    """`standard_webhooks`, `stripe`, `github`, `slack`, or `hmac` for any other provider that signs the body."""
    secrets: Sequence[str] | None
    """Secrets that the provider signs with: one, or two during a rotation. They are stored encrypted and never returned; if omitted, they are unchanged."""
    tolerance_seconds: float
    """Maximum age of a signature, for providers that sign the time."""
    headers: Sequence[str]
    """Request headers that are stored with each event, such as `X-GitHub-Event`."""
    signature_header: str | None
    """`hmac` only: header with the signature."""
    algorithm: Literal["sha256", "sha512", "sha1"]
    """`hmac` only: hash function of the HMAC."""
    encoding: Literal["hex", "base64"]
    """`hmac` only: encoding of the signature."""
    prefix: str
    """`hmac` only: text before the signature, such as `sha256=`."""
    timestamp_header: str | None
    """`hmac` only: header with the time in seconds; the signature then covers `<time>.<body>`."""
    id_header: str | None
    """`hmac` only: header with the event's id, for deduplication."""


class SpreadMemberConfigParams(TypedDict, total=False):
    """Queue, stream or topic that receives a share of the messages. Exactly one is given."""

    queue: str | None
    stream: str | None
    topic: str | None
    weight: int
    """The member gets messages in proportion to it; at most 1,000."""


class StreamConfigParams(TypedDict, total=False):
    """The complete configuration of a stream; omitted fields take their default."""

    shards: int
    """Initial number of shards. Use a reshard to change it."""
    mode: Literal["provisioned", "on_demand"]
    """on_demand: shards are split and merged by load."""
    retention_seconds: float | None
    """null (also in a patch): unlimited."""
    retention_bytes: int | None
    """Per shard; null: no limit."""
    retention_records: int | None
    """Per shard; null: no limit."""
    drop_when_read: bool
    """Delete a record when all consumer groups have committed it."""
    record_bytes_max: int
    event_times: Literal["arrival", "client_prefer", "client_require"]
    """Handling of event times set by producers."""
    event_time_skew_seconds_max: float | None
    """Maximum difference between an event time and now; null: unlimited."""
    key_index: bool
    """Index for reading the latest record of a key; costs about 100 bytes per key."""
    archive: bool
    """Copy records to Parquet, if the deployment has an archive."""
    archive_lag_seconds: float
    """Approximate time until a record is archived."""
    hot_retention_seconds: float | None
    """Time that archived records also stay in the hot store; null: until memory is needed."""
    hot_bytes_max: int | None
    """Maximum size of an archived stream's shard in the hot store. When half of it is not yet archived, writes are rejected with 429. null: no limit."""
    tags: Mapping[str, str]
    """Up to 50 user-defined tags."""


class StreamPatchParams(TypedDict, total=False):
    """Changes to a stream (a JSON Merge Patch); null resets a field to its default.

    `retention_seconds`, `hot_retention_seconds` and `hot_bytes_max` are instead set to none."""

    mode: Literal["provisioned", "on_demand"] | None
    retention_seconds: float | None
    retention_bytes: int | None
    retention_records: int | None
    drop_when_read: bool | None
    record_bytes_max: int | None
    event_times: Literal["arrival", "client_prefer", "client_require"] | None
    event_time_skew_seconds_max: float | None
    key_index: bool | None
    archive: bool | None
    archive_lag_seconds: float | None
    hot_retention_seconds: float | None
    hot_bytes_max: int | None
    tags: Mapping[str, str | None] | None


class TargetConfigParams(TypedDict, total=False):
    """Target of the records: exactly one of the two."""

    stream: str | None
    queue: str | None
    shard_mode: Literal["rehash", "keep"]
    """rehash: distribute by key. keep: records of a source shard stay together."""


class TopicConfigParams(TypedDict, total=False):
    """The complete configuration of a topic; omitted fields take their default."""

    type: Literal["standard", "fifo"]
    """Immutable. `fifo`: each message has a key and a `dedup_id`, and a repeated id adds nothing for five minutes."""
    shards: int
    """Initial number of shards. Messages of one shard are delivered in order. Use a reshard of the stream `topic:<name>` to change it."""
    unmatched: Literal["drop", "refuse"] | None
    """Handling of a message that no route takes. `drop`: it is accepted, and only the topic's log has it. `refuse`: it is refused with `unroutable`; a message of a queue becomes a dead letter of that queue. null: `refuse` for the topic of a queue's routes, else `drop`."""
    deduplicate_by_content: bool
    """A message without `dedup_id` has the SHA-256 of its body. FIFO only."""
    dedup_scope: Literal["topic", "key"]
    """Immutable. Scope in which a `dedup_id` is unique: the topic, which has one shard then, or each key. FIFO only."""
    message_bytes_max: int
    retention_seconds: float | None
    """Time that messages stay in the topic's log: for routes that are behind, for readers, and for replays. null (also in a patch): unlimited."""
    retention_bytes: int | None
    """Per shard; null: no limit."""
    archive: bool
    """Copy messages to Parquet, if the deployment has an archive."""
    tags: Mapping[str, str]
    """Up to 50 user-defined tags."""


class TopicPatchParams(TypedDict, total=False):
    """Changes to a topic (a JSON Merge Patch); null resets a field to its default.

    `retention_seconds` is instead set to none."""

    unmatched: Literal["drop", "refuse"] | None
    deduplicate_by_content: bool | None
    message_bytes_max: int | None
    retention_seconds: float | None
    retention_bytes: int | None
    archive: bool | None
    tags: Mapping[str, str | None] | None


class TransformConfigParams(TypedDict, total=False):
    """Another body, headers or subject for a route's copies."""

    select: str | None
    """JSON Pointer to the part of the body that copies have."""
    paths: Mapping[str, str]
    """Names of values of the message, each with a JSON Pointer such as `/body/order/id`, `/headers/tenant`, `/subject` or `/key`; at most 100. Always there: `<message>`, the body; `<subject>`, `<key>`, `<id>`, `<published_at>`, `<topic>`, `<route>`."""
    template: Any
    """The new body: a JSON value or a text. `<name>` is the value itself where it is a whole string of a JSON value, and else its text; `\\<` is the character. null: the body as it is."""
    headers: HeaderTransformConfigParams
    subject: str | None
    """Text in which `<name>` stands for the text of what it names."""
    strict: bool
    """Do not deliver a message without a value that a path names. Otherwise it is null in JSON and empty in text."""


class ViewConfigParams(TypedDict, total=False):
    """The complete configuration of a view."""

    late: Literal["count", "drop"]
    """Records whose windows have all ended before the watermark: `count` them in their rows, or `drop` them."""
    sources: Literal["none", "range"]
    """`range`: each row stores the first and the last offset, and the number, of the records of each shard that contributed to it, and they can be listed. `none`: it does not."""
    into: Sequence[ViewSinkConfigParams]
    """Streams and queues that get the changes of the rows."""
    keep_seconds: float | None
    """Rows whose window ended this long before the watermark are deleted. Null: never."""
    rows_max: int
    """A view with more rows stops, and keeps the rows that it has."""
    keep_former_seconds: float
    """A revision that was replaced is kept up to date this long, so that `POST …/rollbacks` returns to it at once. It costs what the present one does. At most 30 days."""
    history_seconds: float
    """Earlier versions of the rows can be read for so long, with `at` or `at_batch`. 0: not at all."""


class ViewInputConfigParams(TypedDict, total=False):
    """Relation of a query: a stream that it follows, a table or a view. One is given."""

    stream: str | None
    table: str | None
    """Stream that is read as a table, for joins: the newest record of each key, with `key`, `value` and the `columns`. A record with empty or null data deletes its key."""
    view: str | None
    """Another view, whose rows are read as a table, for joins, with the columns that they have when this view is put."""
    columns: str
    """Columns of the records' JSON data, such as `page string, ms bigint`. Each record also has `key`, `value`, `data`, `headers`, `event_time`, `arrival_time`, `shard` and `offset`."""
    event_time: str
    """Column with the event time, of type timestamp. Without one it is the producer's event time, or else the time of arrival."""
    watermark_seconds: float
    """Distance of the watermark behind the newest event time of a shard."""
    idle_seconds: float
    """A shard without records for this long does not hold the watermark back."""
    start: Literal["earliest", "latest", "time"]
    """First record of the rows. `latest`: the first one after the view was created."""
    start_time: str | datetime | None
    """With `time`: start with the first record that arrived then or later."""
    on_bad: Literal["null", "skip"]
    """Records whose data is not JSON of the columns: `null` for the columns that cannot be read, or `skip` the record."""


class ViewSinkConfigParams(TypedDict, total=False):
    """A stream or a queue that gets the changes of a view's rows: exactly one of the two."""

    stream: str | None
    queue: str | None
    emit: Literal["changes", "final"]
    """`changes`: each change of a row. `final`: each row of a window once, when the watermark has passed its end, and later corrections."""
    when: str
    """A SQL condition on the columns of the rows, as `where` of a match: the sink gets the rows for which it holds. Empty: all."""
    once_per_key: bool
    """A row is sent only when it appears among those for which `when` holds."""
