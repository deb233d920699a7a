/** Millstream: queues and streams, from Node and browsers. */

export { Body } from './bodies.js';
export { type ApiKey, type Millstream, type Options, type WebSocketClass, type WebSocketLike, connect } from './client.js';
export { type Gap, Message, StreamRecord } from './deliveries.js';
export { Closed, ConnectionFailed, type Fault, MillstreamError, NotMillstream, type Problem, errorOf } from './errors.js';
export type { Log, Reachability } from './reachability.js';
export { type RetryOptions, retrying } from './retries.js';
export type { Start } from './starting.js';
export {
  type GroupOptions,
  type QueueOptions,
  type StreamOptions,
  Subscription,
  subscribeToGroup,
  subscribeToQueue,
  subscribeToStream,
} from './subscription.js';
export { type Handler, Reject, Retry, type WorkOptions, Worker } from './worker.js';
export * from './generated/index.js';
