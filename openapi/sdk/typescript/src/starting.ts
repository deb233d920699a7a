/** Start of a subscription to a stream, as offsets, so that any connection can continue without a gap. */

import type { Millstream } from './client.js';
import { getConsumerGroup, listShards, readShard } from './generated/sdk.gen.js';

export type Start = 'earliest' | 'latest' | Date;

/** Return the stream that a group reads. */
export async function streamOf(millstream: Millstream, group: string): Promise<string> {
  const { data } = await getConsumerGroup({ client: millstream.client, path: { group } });
  return data.stream;
}

/** Offsets of a reader, none for the oldest records, and the id of the stream that they belong to, if it is known. */
export interface Position {
  streamId: string;
  offsets: Map<number, number>;
}

/** Return the next offset of each shard for a reader. */
export async function positionOf(
  millstream: Millstream,
  stream: string,
  start: Start,
  shard: number | undefined,
): Promise<Position> {
  if (start === 'earliest') return { streamId: '', offsets: new Map() };
  const { data } = await listShards({ client: millstream.client, path: { stream } });
  const streamId = data.stream_id;
  if (start === 'latest') {
    const wanted = data.items.filter((one) => (shard === undefined ? one.open : one.index === shard));
    return { streamId, offsets: new Map(wanted.map((one) => [one.index, one.next])) };
  }
  const known = new Set(data.items.map((one) => one.index));
  const roots = data.items.filter((one) => !one.parents.some((parent) => known.has(parent)));
  const looking = shard === undefined ? roots.map((one) => one.index) : [shard];
  return { streamId, offsets: await since(millstream, stream, start, looking) };
}

/** Return the offsets from a time. A shard that ended before it is followed by its children, once all parents have ended. */
async function since(
  millstream: Millstream,
  stream: string,
  time: Date,
  looking: number[],
): Promise<Map<number, number>> {
  const ended = new Set<number>();
  const found = new Map<number, number>();
  for (let shard = looking.shift(); shard !== undefined; shard = looking.shift()) {
    const { data } = await readShard({
      client: millstream.client,
      path: { stream, shard },
      query: { time: time.toISOString(), limit: 1, bytes_max: 1 },
    });
    found.set(shard, data.records[0]?.offset ?? data.next_offset);
    if (!data.ended || data.records.length > 0) continue;
    ended.add(shard);
    for (const child of data.children ?? []) {
      const isNext = child.parents.every((parent) => ended.has(parent));
      if (isNext && !looking.includes(child.shard)) looking.push(child.shard);
    }
  }
  return found;
}
