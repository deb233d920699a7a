/** Requests: terms, waiting for replies, and replying. */

import { Body, encodedBody } from '../bodies.js';
import type { ReplyOptions } from '../deliveries.js';
import { NoReply } from '../errors.js';
import { getReply, sendReply } from '../generated/sdk.gen.js';
import type { PendingReplies, ReplyOut, RequestReplies, SendReply } from '../generated/types.gen.js';
import { randomKey } from '../transport/effects.js';
import type { Transport } from '../transport/transport.js';

const WAIT_S = 20; // of one call
const TIMEOUT_S = 20;

/** Terms of a request. */
export interface RequestTerms {
  /** Time until the deadline, after which no reply is accepted; default: 20. */
  timeoutSeconds?: number;
  headers?: Record<string, string>;
  contentType?: string;
  /** A repeat with the same key sends nothing, and waits for the same replies; default: a key for each call. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** A reply to a request. */
export class Reply extends Body {
  readonly headers: Record<string, string>;
  /** Time at which it was accepted. */
  readonly at: Date;

  constructor(fields: ReplyOut) {
    super(fields.body, fields.body_base64, fields.content_type);
    this.headers = fields.headers ?? {};
    this.at = new Date(fields.at);
  }
}

/** Return the header and the body fields of a call that sends a request. */
export function requestFields(body: unknown, terms: RequestTerms) {
  const { timeoutSeconds = TIMEOUT_S, headers, contentType, idempotencyKey } = terms;
  return {
    headers: { 'Idempotency-Key': idempotencyKey ?? randomKey() },
    body: {
      ...encodedBody('body', body),
      headers,
      content_type: contentType,
      timeout_seconds: timeoutSeconds,
      wait_seconds: Math.min(timeoutSeconds, WAIT_S),
    },
  };
}

/** Wait for the other replies to a request, until its deadline. */
export async function allReplies(
  transport: Transport,
  first: RequestReplies | PendingReplies,
  signal: AbortSignal | undefined,
): Promise<Reply[]> {
  let { replies, complete } = first;
  const at = { client: transport.client, path: { request: first.request }, query: { wait_seconds: WAIT_S }, signal };
  while (!complete) ({ replies, complete } = (await getReply(at)).data);
  return replies.map((fields) => new Reply(fields));
}

/** Return the first reply. Throws NoReply. */
export function firstOf([reply]: Reply[]): Reply {
  if (reply === undefined) throw new NoReply();
  return reply;
}

/** Return a reply as the API takes it. */
export function replyFields(body: unknown, { headers, contentType }: ReplyOptions): SendReply {
  return { ...encodedBody('body', body), headers, content_type: contentType };
}

/** Reply to a request. Throws Conflict if no reply is accepted any more. */
export async function reply(
  transport: Transport,
  request: string,
  body: unknown,
  { idempotencyKey, signal, ...options }: ReplyOptions & Pick<RequestTerms, 'idempotencyKey' | 'signal'>,
): Promise<void> {
  const headers = { 'Idempotency-Key': idempotencyKey ?? randomKey() };
  const call = { client: transport.client, path: { request }, headers, signal };
  await sendReply({ ...call, body: replyFields(body, options) });
}
