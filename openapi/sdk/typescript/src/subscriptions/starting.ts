/** Start of a subscription to a stream, as offsets, so that any connection can continue without a gap. */

import { getConsumerGroup, listShards, readShard } from '../generated/sdk.gen.js';
import type { Start } from '../nouns/stream-reads.js';
import type { Transport } from '../transport/transport.js';

/** Return the stream that a group reads. */
export async function streamOf(transport: Transport, group: string): Promise<string> {
  const { data } = await getConsumerGroup({ client: transport.client, path: { group } });
  return data.stream;
}

/** Offsets of a reader, none for the oldest records, and the id of the stream that they belong to, if it is known. */
export interface Position {
  streamId: string;
  positions: Map<number, number>;
}

/** Return the next offset of each shard for a reader. */
export async function positionOf(
  transport: Transport,
  stream: string,
  start: Start,
  shard: number | undefined,
): Promise<Position> {
  if (start === 'earliest') return { streamId: '', positions: new Map() };
  const { data } = await listShards({ client: transport.client, path: { stream } });
  const streamId = data.stream_id;
  if (start === 'latest') {
    const open = data.items.filter((item) => (shard === undefined ? item.open : item.index === shard));
    return { streamId, positions: new Map(open.map(({ index, next }) => [index, next])) };
  }
  const indexes = new Set(data.items.map(({ index }) => index));
  const roots = data.items.filter(({ parents }) => !parents.some((parent) => indexes.has(parent)));
  const first = shard === undefined ? roots.map(({ index }) => index) : [shard];
  return { streamId, positions: await since(transport, stream, start, first) };
}

/** Return the offsets from a time. A shard that ended before it is followed by its children, once all parents have ended. */
async function since(
  transport: Transport,
  stream: string,
  time: Date,
  waiting: number[],
): Promise<Map<number, number>> {
  const ended = new Set<number>();
  const offsets = new Map<number, number>();
  for (let shard = waiting.shift(); shard !== undefined; shard = waiting.shift()) {
    const { data } = await readShard({
      client: transport.client,
      path: { stream, shard },
      query: { time: time.toISOString(), limit: 1, bytes_max: 1 },
    });
    offsets.set(shard, data.records[0]?.offset ?? data.next_offset);
    if (!data.ended || data.records.length > 0) continue;
    ended.add(shard);
    for (const child of data.children ?? []) {
      const isNext = child.parents.every((parent) => ended.has(parent));
      if (isNext && !waiting.includes(child.shard)) waiting.push(child.shard);
    }
  }
  return offsets;
}
