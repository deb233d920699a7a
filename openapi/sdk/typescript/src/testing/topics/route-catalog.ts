/** Routes of an in-memory topic by name, and the rules of their configuration. */

import { DEFAULTS } from '../../defaults.js';
import { Catalog, type Fields, isEqual } from '../definitions.js';
import { invalid, unsupported } from '../problems.js';
import { checkMatch } from './matches.js';
import type { MemoryRoute, MemoryRouteConfig } from './route.js';
import { KINDS, type MemoryTarget, completedSpread, namedTargets } from './spreads.js';
import { checkTarget } from './targets.js';

/** Settings of routes that the in-memory service has only with this value. */
const SIMPLE: Fields = { transform: null, format: 'body', start: 'latest', start_time: null };

/** Routes of a topic by name. */
export class RouteCatalog extends Catalog<MemoryRouteConfig, MemoryRoute> {
  readonly #checkSource: (fields: Fields) => void;

  constructor(make: (name: string, config: MemoryRouteConfig) => MemoryRoute, checkSource: (fields: Fields) => void) {
    super('Route', make);
    this.#checkSource = checkSource;
  }

  override put(name: string, fields: Fields, options: { onlyNew: boolean; dryRun: boolean }): [number, Fields] {
    if (!('target' in fields)) throw invalid('/target', 'Field required', 'required');
    const [status, stored] = super.put(name, fields, options);
    return [status, { ...stored, secret: null, in_force: !options.dryRun }];
  }

  protected override check(fields: Fields): void {
    for (const [field, value] of Object.entries(fields)) {
      if (!(field in (DEFAULTS.RouteConfig ?? {}))) throw invalid(`/${field}`, `Unknown field '${field}'`, 'unknown_field');
      if (field in SIMPLE && !isEqual(value, SIMPLE[field])) throw unsupported(`${field} of this kind`);
    }
    if ('target' in fields) checkTarget(fields.target as Fields);
    this.#checkSource(fields);
    checkMatch(fields.match);
  }

  protected override completed(config: Fields): Fields {
    const given = config.target as Fields;
    const target: MemoryTarget = Array.isArray(given.spread)
      ? completedSpread(given)
      : Object.fromEntries(KINDS.map((name) => [name, given[name] ?? null]));
    const hasQueue = namedTargets(target).some(({ queue }) => typeof queue === 'string');
    for (const name of ['delay_seconds', 'ttl_seconds']) {
      if (!hasQueue && config[name])
        throw invalid(`/${name}`, 'Only the messages of a queue or a URL have it', 'not_supported');
    }
    if (config.on_failure === 'dead_letter' && config.dead_letter_queue === null)
      throw invalid('/dead_letter_queue', "on_failure 'dead_letter' requires a dead-letter queue", 'required');
    return { ...config, target };
  }
}
