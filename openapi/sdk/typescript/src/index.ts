/** Millstream: queues and streams, from Node and browsers. */

export { Millstream, type ListOptions } from './millstream.js';
export type { Hooks, RequestEvent, ResponseEvent } from './transport/hooks.js';
export {
  type CallOptions,
  type Logger,
  type Options,
  type Retries,
  type Secret,
  type WebSocketClass,
  type WebSocketLike,
} from './transport/settings.js';
export {
  type Delivered,
  type MessageOptions,
  type MessagesOptions,
  NewMessage,
  Queue,
  type QueueRequestOptions,
  type ReceiveOptions,
  type SendOptions,
} from './nouns/queue.js';
export { type Appended, type AppendOptions, NewRecord, type RecordOptions, Stream } from './nouns/stream.js';
export type { MessageFilter } from './nouns/filters.js';
export type { ReadOptions, RecordPage, Start } from './nouns/stream-reads.js';
export { Group, type Offsets } from './nouns/group.js';
export { type BatchesOptions, type FetchOptions, type GroupRead, Member } from './nouns/member.js';
export { BackTestJob, ViewBackTest } from './nouns/backtest.js';
export { Replay, Replays } from './nouns/replay.js';
export type { WatchOptions } from './nouns/watch.js';
export { Job } from './nouns/job.js';
export { Mirror } from './nouns/mirror.js';
export { Source } from './nouns/source.js';
export { Query } from './nouns/query.js';
export { type RowOptions, type RowPageOptions, View } from './nouns/view.js';
export { Socket, type SocketCallOptions, type SocketRequestOptions } from './nouns/socket.js';
export {
  NewPublication,
  type PublicationOptions,
  type Published,
  type PublishOptions,
  Topic,
  type TopicRequestOptions,
} from './nouns/topic.js';
export { Reply, type RequestTerms } from './nouns/requests.js';
export { Route } from './nouns/route.js';
export type { ApplyOptions, CreateOptions } from './nouns/definitions.js';
export { Body } from './bodies.js';
export { type Gap, Message, type OnGap, type ReplyOptions, StreamRecord } from './deliveries.js';
export {
  type GroupSubscribeOptions,
  type QueueSubscribeOptions,
  type StreamSubscribeOptions,
  Subscription,
} from './subscriptions/subscription.js';
export { type Handler, Reject, Retry, type Worker as QueueWorker, type WorkOptions } from './work/worker.js';
export {
  AlreadyExists,
  BadRequest,
  Conflict,
  ConnectionFailed,
  type Fault,
  Forbidden,
  Gone,
  ItemRefused,
  Limited,
  Lost,
  MillstreamError,
  NeverConnected,
  NoReply,
  NotFound,
  NotMillstream,
  OutcomeUnknown,
  PartlyRefused,
  PreconditionFailed,
  type Problem,
  Refused,
  ServerFailed,
  TimedOut,
  Unauthenticated,
  Unavailable,
} from './errors.js';
export { VERSION } from './transport/version.js';
export * from './former.js';
export * from './generated/index.js';
