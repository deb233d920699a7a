/** Operations of streams: append and read records. */

import type { Fields } from '../definitions.js';
import { unsupported } from '../problems.js';
import { type Operations, bodyOf, once, polled } from './operations.js';

export const STREAM_CALLS: Operations = [
  [
    'POST streams/*/records',
    (service, request, name = '') => {
      const stream = service.streams.writable(name);
      const append = () => stream.append(bodyOf(request).records as Fields[]);
      return once(service, request, () => ({ status: 200, body: { records: append(), failed: 0 } }));
    },
  ],
  ['GET streams/*/records', (service, request, name = '') => polled(request, service.stream(name).read(request.query))],
  ['GET streams/*/shards', (service, _, name = '') => service.stream(name).listShards()],
  [
    'GET streams/*/shards/*/records',
    (service, request, name = '', shard = '') =>
      polled(request, service.stream(name).readShard(Number(shard), request.query)),
  ],
  [
    'POST streams/*/shards/*/records',
    (service, request, name = '', shard = '') => {
      const { records, expected_offset: expected, producer, fence } = bodyOf(request);
      if (producer || fence) throw unsupported('producer or fence');
      const stream = service.streams.writable(name);
      const appended = stream.appendToShard(Number(shard), records as Fields[], expected as number | undefined);
      return { records: appended, failed: 0 };
    },
  ],
];
