/** Queues: sending, receiving, settling and working. */

import { encodedBody, encodedSize } from '../bodies.js';
import { Message, type Settling } from '../deliveries.js';
import type { ItemRefused } from '../errors.js';
import { receiveMessages, sendMessages, sendRequest } from '../generated/sdk.gen.js';
import type { MessageIn, SentMessageOut, SettledOut, SettlementIn } from '../generated/types.gen.js';
import { attempted } from '../subscriptions/closing.js';
import { type QueueSubscribeOptions, Subscription } from '../subscriptions/subscription.js';
import { randomKey } from '../transport/effects.js';
import type { CallOptions } from '../transport/settings.js';
import type { Transport } from '../transport/transport.js';
import { type Handler, Worker, type WorkOptions } from '../work/worker.js';
import { batches } from './batches.js';
import { QueueOperations } from './queue-operations.js';
import { type Reply, type RequestTerms, allReplies, firstOf, requestFields } from './requests.js';
import { SettlementBatcher, settleAll } from './settlements.js';

export interface MessageOptions {
  headers?: Record<string, string>;
  contentType?: string;
  /** Messages of a group are delivered in order. */
  group?: string;
  dedupId?: string;
  delaySeconds?: number;
  ttlSeconds?: number;
  priority?: number;
}

export interface SendOptions extends MessageOptions {
  /** Calls with the same key send once; default: a key for each call. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface QueueRequestOptions extends RequestTerms {
  group?: string;
  priority?: number;
}

/** A message to send, with options: see `sendMany`. */
export class NewMessage {
  readonly body: unknown;
  readonly options: MessageOptions;

  constructor(body: unknown, options: MessageOptions = {}) {
    this.body = body;
    this.options = options;
  }
}

export interface ReceiveOptions {
  /** Default: 1. */
  messagesMax?: number;
  /** Time to wait for the first message; default: the queue's. */
  waitSeconds?: number;
  visibilityTimeoutSeconds?: number;
  signal?: AbortSignal;
}

export interface MessagesOptions extends ReceiveOptions {
  /** End when none arrives within `waitSeconds`. */
  untilEmpty?: boolean;
}

/** A delivery to settle: a Message, or what has its receipt handle. */
export interface Delivered {
  receiptHandle: string;
}

const WAIT_S = 20;

/** A queue, whether it exists or not. Throws MillstreamError. */
export class Queue extends QueueOperations implements Settling {
  readonly #settlements: SettlementBatcher;

  constructor(transport: Transport, name: string) {
    super(transport, name);
    this.#settlements = new SettlementBatcher(transport, name);
  }

  /**
   * Return the same queue whose calls have another time limit or other retries: `orders.withOptions({ timeoutSeconds: 2 })`.
   */
  withOptions(options: CallOptions): Queue {
    return new Queue(this.transport.withOptions(options), this.name);
  }

  // ── Sending ──

  /** Send one message. `body`: text, bytes (Uint8Array), or a JSON value. */
  async send(body: unknown, options: SendOptions = {}): Promise<SentMessageOut> {
    const [sent] = await this.#send([messageOf(new NewMessage(body, options))], options);
    return sent as SentMessageOut;
  }

  /** Send bodies or NewMessages; if they do not fit into one call, in several, each all or nothing. */
  async sendMany(messages: Iterable<unknown>, { signal }: { signal?: AbortSignal } = {}): Promise<SentMessageOut[]> {
    const sent: SentMessageOut[] = [];
    const all = Array.from(messages, (body) => (body instanceof NewMessage ? body : new NewMessage(body)));
    for (const batch of batches(all, ({ body }) => encodedSize(body))) {
      sent.push(...(await this.#send(batch.map(messageOf), { signal })));
    }
    return sent;
  }

  async #send(messages: MessageIn[], { idempotencyKey, signal }: SendOptions): Promise<SentMessageOut[]> {
    const headers = { 'Idempotency-Key': idempotencyKey ?? randomKey() };
    return (await sendMessages({ ...this.at, headers, signal, body: { messages } })).data.messages;
  }

  /**
   * Send a message, and wait for the reply of its receiver. Throws NoReply.
   *
   * The message expires at the deadline. A repeat with the same key sends nothing, and waits for the same reply.
   */
  async request(body: unknown, options: QueueRequestOptions = {}): Promise<Reply> {
    const { group, priority, signal } = options;
    const fields = requestFields(body, options);
    const { data } = await sendRequest({ ...this.at, ...fields, body: { ...fields.body, group, priority }, signal });
    return firstOf(await allReplies(this.transport, data, signal));
  }

  // ── Receiving ──

  /** Receive messages, waiting for the first; an empty list means that none arrived. */
  async receive(options: ReceiveOptions = {}): Promise<Message[]> {
    const { messagesMax = 1, waitSeconds, visibilityTimeoutSeconds, signal } = options;
    const body = {
      messages_max: messagesMax,
      wait_seconds: waitSeconds,
      visibility_timeout_seconds: visibilityTimeoutSeconds,
      attempt_id: randomKey(),
    };
    const { data } = await receiveMessages({ ...this.at, signal, body });
    return data.messages.map((fields) => new Message(fields, this));
  }

  /**
   * Yield messages indefinitely, or until none arrives within `waitSeconds`. Settle each of them.
   *
   * `messagesMax` messages are received at a time; those not yet yielded are released when the iteration ends. Aborting the
   * signal ends it.
   */
  async *messages(options: MessagesOptions = {}): AsyncGenerator<Message, void, void> {
    const { untilEmpty = false, signal, waitSeconds = WAIT_S } = options;
    while (!signal?.aborted) {
      const batch = await unlessAborted(this.receive({ ...options, waitSeconds }), signal);
      if (untilEmpty && batch.length === 0) return;
      yield* this.#each(batch, signal);
    }
  }

  async *#each(batch: Message[], signal: AbortSignal | undefined): AsyncGenerator<Message, void, void> {
    const waiting = [...batch];
    try {
      for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
        if (signal?.aborted) waiting.unshift(message);
        if (signal?.aborted) return;
        yield message;
      }
    } finally {
      if (waiting.length > 0) await attempted(this.release(waiting));
    }
  }

  /**
   * Subscribe to the queue's messages, with a prefetch limit: they are pushed over a WebSocket, or fetched by long polls
   * where there is none.
   */
  subscribe(options: QueueSubscribeOptions = {}): Subscription<Message> {
    return Subscription.toQueue(this.transport, this, options);
  }

  // ── Working ──

  /**
   * Pass messages to `handler`, a limited number concurrently, until the signal is aborted, or SIGTERM or SIGINT.
   *
   * A message is acknowledged when the handler returns, and redelivered after the queue's back-off when it throws; `Retry` and
   * `Reject` give more control. If the message is a request, what the handler returns is the reply to it, unless it is
   * undefined or null. Messages in progress stay hidden, up to `leaseSeconds` after the worker ends.
   */
  work(handler: Handler, options: WorkOptions = {}): Promise<void> {
    return this.worker(handler, options).run();
  }

  /** Return a worker that is not running yet: see `work`. */
  worker(handler: Handler, options: WorkOptions = {}): Worker {
    return new Worker(this.transport, this, handler, options);
  }

  // ── Settling ──

  /** Settle one delivery; return why its reply was refused, if it was. Throws ItemRefused. */
  settle(settlement: SettlementIn): Promise<ItemRefused | undefined> {
    return this.#settlements.settle(settlement);
  }

  /** Settle deliveries; return one result for each, in order. */
  settleAll(settlements: Iterable<SettlementIn>): Promise<(SettledOut | ItemRefused)[]> {
    return settleAll(this.transport.client, this.name, settlements);
  }

  /** Acknowledge messages, which deletes them. */
  ack(messages: Iterable<Delivered>): Promise<(SettledOut | ItemRefused)[]> {
    return this.#settleEach(messages, { action: 'ack' });
  }

  /** Report failed attempts: redelivered after a delay or the queue's back-off. */
  nack(
    messages: Iterable<Delivered>,
    delaySeconds?: number,
    reason?: string,
    details?: string,
  ): Promise<(SettledOut | ItemRefused)[]> {
    return this.#settleEach(messages, { action: 'nack', delay_seconds: delaySeconds, reason, details });
  }

  /** Return messages without counting an attempt; they are ready immediately. */
  release(messages: Iterable<Delivered>): Promise<(SettledOut | ItemRefused)[]> {
    return this.#settleEach(messages, { action: 'release' });
  }

  /** Reject messages permanently; they are dead-lettered. */
  reject(messages: Iterable<Delivered>, reason?: string, details?: string): Promise<(SettledOut | ItemRefused)[]> {
    return this.#settleEach(messages, { action: 'reject', reason, details });
  }

  /** Extend the visibility timeout of messages, counted from now. */
  extend(messages: Iterable<Delivered>, seconds: number): Promise<(SettledOut | ItemRefused)[]> {
    return this.#settleEach(messages, { action: 'extend', visibility_timeout_seconds: seconds });
  }

  #settleEach(
    messages: Iterable<Delivered>,
    settlement: Omit<SettlementIn, 'receipt_handle'>,
  ): Promise<(SettledOut | ItemRefused)[]> {
    return this.settleAll(
      Array.from(messages, ({ receiptHandle }) => ({ ...settlement, receipt_handle: receiptHandle })),
    );
  }
}

/** Return a message to send as the API takes it. */
export function messageOf({ body, options }: NewMessage): MessageIn {
  return {
    ...encodedBody('body', body),
    headers: options.headers,
    content_type: options.contentType,
    group: options.group,
    dedup_id: options.dedupId,
    delay_seconds: options.delaySeconds,
    ttl_seconds: options.ttlSeconds,
    priority: options.priority,
  };
}

/** Return what was received; nothing if the signal was aborted meanwhile. */
async function unlessAborted(receiving: Promise<Message[]>, signal: AbortSignal | undefined): Promise<Message[]> {
  try {
    return await receiving;
  } catch (error) {
    if (signal?.aborted) return [];
    throw error;
  }
}
