/** Operations of definitions: list, create, replace, change, delete and pause. */

import type { Catalog, Defined } from '../definitions.js';
import { unsupported } from '../problems.js';
import type { MemoryService } from '../service.js';
import { type Operations, bodyOf, putOptions } from './operations.js';

function catalogOf(service: MemoryService, nouns: string): Catalog<never, Defined<never>> {
  const catalogs: Record<string, unknown> = {
    queues: service.queues,
    streams: service.streams,
    groups: service.groups,
    topics: service.topics,
  };
  if (!(nouns in catalogs)) throw unsupported(nouns);
  return catalogs[nouns] as Catalog<never, Defined<never>>;
}

export const DEFINITION_CALLS: Operations = [
  ['GET readyz', () => ({ status: 200, body: { status: 'ok', checks: {} } })],
  ['GET *', (service, { query }, nouns = '') => catalogOf(service, nouns).page(query.get('prefix') ?? '')],
  [
    'PUT */*',
    (service, request, nouns = '', name = '') => {
      const fields = bodyOf(request);
      if (nouns === 'groups') service.stream(fields.stream as string);
      const [status, body] = catalogOf(service, nouns).put(name, fields, putOptions(request));
      return { status, body };
    },
  ],
  ['GET */*', (service, _, nouns = '', name = '') => catalogOf(service, nouns).get(name).shown()],
  ['PATCH */*', (service, request, nouns = '', name = '') => catalogOf(service, nouns).patch(name, bodyOf(request))],
  [
    'DELETE */*',
    (service, _, nouns = '', name = '') => {
      catalogOf(service, nouns).delete(name);
      service.topics.discard(`${nouns.slice(0, -1)}:${name}`);
      return undefined;
    },
  ],
  ['PUT */*/pause', (service, _, nouns = '', name = '') => catalogOf(service, nouns).pause(name, true)],
  ['DELETE */*/pause', (service, _, nouns = '', name = '') => catalogOf(service, nouns).pause(name, false)],
];
