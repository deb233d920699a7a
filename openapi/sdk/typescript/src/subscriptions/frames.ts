/** Frames of `millstream.v1.json` that the service sends. */

import type { ItemError, ReceivedMessageOut, RecordOut, ReplyOut } from '../generated/types.gen.js';
import type { Problem } from '../errors.js';

export const PROTOCOL = 'millstream.v1.json';

export type Frame =
  | { type: 'welcome'; session: string; resumed: boolean; heartbeat_seconds: number; pong_timeout_seconds: number; limits: { frame_bytes_max: number } }
  | { type: 'ok'; id: string; results?: Result[]; stream_id?: string }
  | { type: 'reply'; id: string; replies: ReplyOut[] }
  | { type: 'error'; problem: Problem; id?: string; sub?: string; receipt_handles?: string[] }
  | { type: 'messages'; sub: string; seq: number; messages: ReceivedMessageOut[] }
  | { type: 'records'; sub: string; seq: number; shard: number; next_offset: number; records: RecordOut[] }
  | { type: 'gap'; sub: string; seq: number; shard: number; first: number; next: number; reason: string }
  | { type: 'shard_ended'; sub: string; seq: number; shard: number; children: number[] }
  | { type: 'assigned'; sub: string; generation: number; shards: { shard: number; offset: number }[] }
  | { type: 'revoking'; sub: string; shards: number[]; deadline_seconds: number }
  | { type: 'revoked'; sub: string; shards: number[] }
  | { type: 'paused'; sub: string; reason: string }
  | { type: 'resumed'; sub: string }
  | { type: 'ping' }
  | { type: 'pong' }
  | { type: 'bye'; code: number; reason: string; reconnect: boolean; after_seconds?: number };

/** Result of one item of a settlement. */
export interface Result {
  status?: string;
  error?: ItemError;
  reply_error?: ItemError;
}

/** A frame of the client. */
export type Said = { type: string } & Record<string, unknown>;

/** Decode the frames of one message. Types that this client does not know are ignored. */
export function framesOf(text: string): Frame[] {
  const frames = JSON.parse(text) as Frame | Frame[];
  return Array.isArray(frames) ? frames : [frames];
}
