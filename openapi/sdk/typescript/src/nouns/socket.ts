/** Publishing, requests and replies over one WebSocket. */

/// <reference lib="esnext.disposable" preserve="true" />

import { encodedSize } from '../bodies.js';
import type { ReplyOptions } from '../deliveries.js';
import { ItemRefused, Lost, MillstreamError, PartlyRefused } from '../errors.js';
import type { MessageIn, PublicationIn, PublicationResult } from '../generated/types.gen.js';
import { Connection } from '../subscriptions/connection.js';
import type { Said } from '../subscriptions/frames.js';
import { type Answer, Publisher } from '../subscriptions/publisher.js';
import { Attempts } from '../transport/attempts.js';
import { randomKey } from '../transport/effects.js';
import { sleep } from '../transport/retries.js';
import type { Transport } from '../transport/transport.js';
import { batches, sendBatch } from './batches.js';
import { NewMessage, messageOf } from './queue.js';
import { Reply, replyFields } from './requests.js';
import { NewPublication, type PublishOptions, type Published, publicationOf, published } from './topic.js';

const BATCH_BYTES_MAX = 2 ** 20; // of bodies in one frame, which may have 2 MiB with all that is around them

/** Options of a call that can be repeated with the same key, and aborted. */
export type SocketCallOptions = Pick<PublishOptions, 'subject' | 'idempotencyKey' | 'signal'>;

export interface SocketRequestOptions extends SocketCallOptions {
  /** Number of replies to wait for; default: 1. */
  repliesMax?: number;
  /** Time until the deadline, after which no reply is accepted; default: 20. */
  timeoutSeconds?: number;
}

/**
 * WebSocket for publishing to topics, for requests and for replies: `await socket.publish('shop', { id: 1 })`.
 *
 * It opens with the first call. The next call need not wait for the answer to the last one. A lost connection is reopened, for
 * as long as calls are retried, and frames without an answer are sent again: each takes effect once. Close it at the end.
 * Throws MillstreamError.
 */
export class Socket implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #connection: Connection<Publisher>;

  constructor(transport: Transport) {
    if (transport.WebSocket === undefined)
      throw new TypeError('There is no WebSocket here, or not for a namespace: topic(), queue() and reply() work.');
    this.#transport = transport;
    this.#connection = new Connection(transport, () => Promise.resolve(new Publisher()), 'socket', false);
  }

  /** Connect, and return once the service answers; the first call does the same. */
  async open(): Promise<this> {
    await this.#connection.open();
    return this;
  }

  /** Publish a body or a NewPublication to a topic; `subject` applies to a plain body. Throws ItemRefused. */
  async publish(topic: string, message: unknown, options: SocketCallOptions = {}): Promise<Published> {
    const [result] = await this.#publish(topic, [newPublication(message, options)], options);
    if (result instanceof ItemRefused) throw result;
    return result as Published;
  }

  /**
   * Publish bodies or NewPublications to a topic; return the result of each, in order.
   *
   * Throws PartlyRefused if some were rejected; frames after the first one with a rejected message are not sent.
   */
  async publishMany(
    topic: string,
    messages: Iterable<unknown>,
    options: Pick<SocketCallOptions, 'subject' | 'signal'> = {},
  ): Promise<Published[]> {
    const all = Array.from(messages, (message) => newPublication(message, options));
    const done: (Published | ItemRefused)[] = [];
    for (const batch of batches(all, ({ body }) => encodedSize(body), BATCH_BYTES_MAX)) {
      done.push(...(await this.#publish(topic, batch, { signal: options.signal })));
      if (done.some((result) => result instanceof ItemRefused)) throw new PartlyRefused(done);
    }
    return done as Published[];
  }

  /**
   * Send a request to "queue:quotes" or "topic:offers"; return its replies.
   *
   * `message`: a body, or a NewMessage for a queue and a NewPublication for a topic. It returns as soon as there are `repliesMax`
   * replies, and at the deadline with those that arrived. A repeat with the same key sends nothing, and waits for the same
   * replies.
   */
  async request(to: string, message: unknown, options: SocketRequestOptions = {}): Promise<Reply[]> {
    const { repliesMax = 1, timeoutSeconds = 20, signal } = options;
    const fields = { message: requestMessage(to, message, options), replies_max: repliesMax };
    const frame = { type: 'request', to, ...fields, timeout_seconds: timeoutSeconds, ...keyOf(options) };
    const answer = await this.#ask(frame, signal);
    return answer.type === 'reply' ? answer.replies.map((reply) => new Reply(reply)) : [];
  }

  /**
   * Reply to a request: the `replyTo` of a received message. Acknowledge the message afterwards.
   *
   * Throws Conflict, with the code `reply_taken` or `reply_too_late`, if no reply is accepted any more.
   */
  async reply(
    replyTo: string,
    body: unknown,
    options: ReplyOptions & Pick<SocketCallOptions, 'idempotencyKey' | 'signal'> = {},
  ): Promise<void> {
    const reply = { request: replyTo, ...replyFields(body, options) };
    await this.#ask({ type: 'reply', reply, ...keyOf(options) }, options.signal);
  }

  /** Close the socket: calls without an answer throw OutcomeUnknown. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Close the socket. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ── Frames ──

  /** Publish a batch; retry temporary rejections with the same key, which adds nothing twice. */
  #publish(
    topic: string,
    messages: NewPublication[],
    options: Pick<SocketCallOptions, 'idempotencyKey' | 'signal'>,
  ): Promise<(Published | ItemRefused)[]> {
    const frame = { type: 'publish', to: `topic:${topic}`, items: messages.map(publicationOf), ...keyOf(options) };
    const send = async () => {
      const answer = await this.#ask(frame, options.signal);
      return answer.type === 'ok' ? ((answer.results ?? []) as PublicationResult[]).map(published) : [];
    };
    return sendBatch(send, this.#transport, options.signal);
  }

  /** Send a frame and return its answer; repeat it after a temporary rejection. */
  async #ask(frame: Said, signal: AbortSignal | undefined): Promise<Exclude<Answer, MillstreamError>> {
    const { settings, service } = this.#transport;
    const attempts = new Attempts(true, true, settings.retries, service);
    for (;;) {
      const answer = await this.#answer(frame, signal);
      if (!(answer instanceof MillstreamError)) return answer;
      await sleep(attempts.pauseAfter(answer), signal);
    }
  }

  /** Send a frame and return its answer. Throws the error that ended the connection, or the signal's reason. */
  async #answer(frame: Said, signal: AbortSignal | undefined): Promise<Answer> {
    signal?.throwIfAborted();
    let drop = (): void => undefined;
    const answering = async (): Promise<Answer> => {
      await this.#connection.open();
      signal?.throwIfAborted();
      const { session, failure } = this.#connection;
      if (failure !== undefined || session === undefined) throw failure ?? new Lost(1000, 'The socket is closed');
      const sent = session.send(frame);
      ({ drop } = sent);
      this.#connection.say(sent.said);
      return await sent.answer;
    };
    try {
      return await unlessAborted(answering(), signal);
    } finally {
      drop();
    }
  }
}

/** Return the result of a promise. Throws the signal's reason if it is aborted before. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
    void promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}

function keyOf({ idempotencyKey }: Pick<SocketCallOptions, 'idempotencyKey'>) {
  return { idempotency_key: idempotencyKey ?? randomKey() };
}

function newPublication(message: unknown, { subject }: Pick<SocketCallOptions, 'subject'>): NewPublication {
  return message instanceof NewPublication ? message : new NewPublication(message, { subject });
}

/** Return the message of a request. Throws TypeError. */
function requestMessage(to: string, message: unknown, options: SocketRequestOptions): PublicationIn | MessageIn {
  if (to.startsWith('topic:')) return publicationOf(newPublication(message, options));
  if (!to.startsWith('queue:')) throw new TypeError(`${to} must start with queue: or topic:.`);
  if (options.subject !== undefined) throw new TypeError('A message to a queue has no subject.');
  return messageOf(message instanceof NewMessage ? message : new NewMessage(message));
}
