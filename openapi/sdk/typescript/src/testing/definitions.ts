/** Definitions of queues, streams, groups, topics and routes: create, replace, change and list. */

import { DEFAULTS } from '../defaults.js';
import { MemoryProblem, invalid, unsupported } from './problems.js';

/** Fields in the form of the REST API. */
export type Fields = Record<string, unknown>;

/** Source of the time, in milliseconds since 1970. */
export type Clock = () => number;

/** Settings that the in-memory service has only with this value. */
const SIMPLE: Fields = {
  on_poison: 'skip',
  overflow: 'reject',
  group_weights: [],
  messages_max: null,
  bytes_max: null,
  stream_view: false,
  expires_after_idle_seconds: null,
};
const IMMUTABLE = new Set(['type', 'shards', 'stream', 'kind', 'start', 'start_time']);
const MEASURED = new Set(['queue', 'stream', 'group']);
const IMMUTABLE_OF_TOPICS = new Set(['dedup_scope']);
const NULLABLE = new Set(['ttl_seconds', 'attempts_max', 'dead_letters', 'backoff', 'retention_seconds']);

/** Format a time as the API does. */
export function moment(at: number): string {
  return new Date(at).toISOString();
}

/** Return whether two values have the same JSON. */
export function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** An object with a configuration, whose fields are those of the REST API. */
export class Defined<Config extends Fields> {
  readonly name: string;
  config: Config;
  protected readonly now: Clock;
  readonly createdAt: number;
  #version = 1;
  #changedAt: number;

  constructor(name: string, config: Config, now: Clock) {
    this.name = name;
    this.config = config;
    this.now = now;
    this.createdAt = this.#changedAt = now();
  }

  /** Return the configuration as the API does. */
  shown(): Fields {
    const times = { created_at: moment(this.createdAt), changed_at: moment(this.#changedAt) };
    return { name: this.name, ...this.config, version: this.#version, ...times };
  }

  /** Replace the configuration. */
  configure(config: Config): void {
    if (isEqual(config, this.config)) return;
    this.config = config;
    this.#version += 1;
    this.#changedAt = this.now();
  }
}

/** All objects of a kind, by name. */
export class Catalog<Config extends Fields, T extends Defined<Config>> {
  readonly #kind: string;
  readonly #title: string;
  readonly #defaults: Fields;
  readonly #make: (name: string, config: Config) => T;
  protected readonly objects = new Map<string, T>();

  constructor(kind: 'Queue' | 'Stream' | 'Group' | 'Topic' | 'Route', make: (name: string, config: Config) => T) {
    this.#kind = kind.toLowerCase();
    this.#title = kind;
    this.#defaults = DEFAULTS[`${kind}Config`] ?? {};
    this.#make = make;
  }

  /** Return an object. Throws MemoryProblem. */
  get(name: string): T {
    const existing = this.objects.get(name);
    if (existing === undefined)
      throw new MemoryProblem(`${this.#kind}_not_found`, `${this.#title} '${name}' does not exist.`);
    return existing;
  }

  /** Create or replace an object; return the status and the stored object. */
  put(name: string, fields: Fields, { onlyNew, dryRun }: { onlyNew: boolean; dryRun: boolean }): [number, Fields] {
    this.check(fields);
    const existing = this.objects.get(name);
    const partitions = this.#kind === 'queue' ? { partitions: fields.partitions ?? existing?.config.partitions ?? 1 } : {};
    const config = this.#configOf(name, { ...fields, ...partitions });
    if (existing === undefined) {
      const made = this.#make(name, config);
      if (!dryRun) this.objects.set(name, made);
      return [201, { ...made.shown(), created: true, dry_run: dryRun, changes: [] }];
    }
    if (onlyNew) throw this.#exists(existing, Object.fromEntries(Object.keys(fields).map((key) => [key, config[key]])));
    const replaced = { ...config, paused: existing.config.paused };
    const changes = changesOf(existing.config, replaced);
    this.#checkImmutable(existing.config, changes);
    const planned = Object.entries(existing.shown()).map(([name, value]) => [name, name in replaced ? replaced[name] : value]);
    if (!dryRun) existing.configure(replaced);
    const shown = dryRun ? Object.fromEntries(planned) : existing.shown();
    return [200, { ...shown, created: false, dry_run: dryRun, changes }];
  }

  /** Return a new object, which is not stored. Throws MemoryProblem. */
  protected made(name: string, fields: Fields): T {
    return this.#make(name, this.#configOf(name, fields));
  }

  #configOf(name: string, fields: Fields): Config {
    return this.completed({ ...this.#defaults, ...fields, paused: false }, name) as Config;
  }

  /** Change fields; null resets one to its default. */
  patch(name: string, fields: Fields): Fields {
    const existing = this.get(name);
    this.check(fields);
    const given = Object.entries(fields).filter(([key, value]) => key !== 'partitions' || value !== null);
    const changed = given.map(([key, value]) => {
      return [key, value === null && !NULLABLE.has(key) ? this.#defaults[key] : value];
    });
    const config = this.completed({ ...existing.config, ...Object.fromEntries(changed) }, name) as Config;
    this.#checkImmutable(existing.config, changesOf(existing.config, config));
    existing.configure(config);
    return existing.shown();
  }

  /** Pause or resume an object. */
  pause(name: string, paused: boolean): Fields {
    const existing = this.get(name);
    existing.configure({ ...existing.config, paused });
    return existing.shown();
  }

  /** Delete an object. Throws MemoryProblem. */
  delete(name: string): void {
    this.get(name);
    this.objects.delete(name);
  }

  /** Return all objects. */
  all(): T[] {
    return [...this.objects.values()];
  }

  /** Return the objects whose names have a prefix. */
  page(prefix: string): Fields {
    const names = [...this.objects.keys()].filter((name) => name.startsWith(prefix)).sort();
    const measured = MEASURED.has(this.#kind) ? { measurement: null } : {};
    return { items: names.map((name) => ({ ...this.get(name).shown(), ...measured })), next_cursor: null };
  }

  /** Throw MemoryProblem for fields that are unknown, or not in memory. */
  protected check(fields: Fields): void {
    for (const [field, value] of Object.entries(fields)) {
      if (!(field in this.#defaults)) throw invalid(`/${field}`, `Unknown field '${field}'`, 'unknown_field');
      if (field in SIMPLE && !isEqual(value, SIMPLE[field])) throw unsupported(`${field} of this kind`);
      if (field === 'dead_letters' && (value as Fields | null)?.topic) throw unsupported('topic for dead letters');
    }
  }

  /** Complete a configuration, and check what depends on its type and name. */
  protected completed(config: Fields, _name: string): Fields {
    return completed(config);
  }

  #checkImmutable(existing: Fields, changes: Change[]): void {
    for (const { pointer } of changes) {
      const field = pointer.slice(1);
      const isFixed = field === 'partitions' && existing.type === 'fifo';
      const isOfTopic = this.#kind === 'topic' && IMMUTABLE_OF_TOPICS.has(field);
      if (isFixed || isOfTopic || IMMUTABLE.has(field)) throw invalid(pointer, `${pointer} is immutable.`, 'immutable');
    }
  }

  #exists(existing: T, requested: Fields): MemoryProblem {
    const members = { current: existing.shown(), changes: changesOf(existing.config, requested) };
    const detail = `The ${this.#kind} '${existing.name}' already exists.`;
    return new MemoryProblem('precondition_failed', detail, members);
  }
}

/** Complete a backoff policy, and check what depends on the type of a queue. */
function completed(config: Fields): Fields {
  if (config.deduplicate_by_content === true && config.type !== 'fifo')
    throw invalid('/dedup_scope', 'Deduplication requires a FIFO queue', 'not_supported');
  const isDivided = typeof config.partitions === 'number' && config.partitions > 1;
  if (isDivided && config.type === 'fifo' && config.dedup_scope !== 'group')
    throw invalid('/dedup_scope', "A FIFO queue with partitions requires the deduplication scope 'group'", 'required');
  const parts: Fields = {};
  if (config.backoff) parts.backoff = { ...DEFAULTS.BackoffConfig, ...(config.backoff as Fields) };
  if (config.dead_letters) parts.dead_letters = { queue: null, topic: null, ...(config.dead_letters as Fields) };
  return { ...config, ...parts };
}

interface Change {
  pointer: string;
  before: unknown;
  after: unknown;
}

/** Return the fields that differ, also those of objects. */
function changesOf(before: Fields, after: Fields, parent = ''): Change[] {
  const names = parent === '' ? Object.keys(after) : [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.flatMap((name) => {
    const [old, value] = [before[name], after[name]];
    if (isObject(old) && isObject(value)) return changesOf(old, value, `${parent}/${name}`);
    const change = { pointer: `${parent}/${name}`, before: old ?? null, after: value ?? null };
    return isEqual(change.before, change.after) ? [] : [change];
  });
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
