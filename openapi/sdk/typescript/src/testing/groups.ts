/** In-memory consumer groups: members, assignment of shards, offsets and bookmarks. */

import { decodeCursor, encodeCursor } from './cursors.js';
import { type Clock, Defined, type Fields, moment } from './definitions.js';
import { MemoryProblem, unsupported } from './problems.js';
import { type MemoryStream, type Positions, limitOf, shownRecord } from './streams.js';

const FILTERS = ['key', 'header', 'body', 'subject', 'match'];
const STALE = 'The shard was reassigned or reset since this generation; nothing was committed.';

/** Configuration of a group, with the fields of the REST API. */
export interface MemoryGroupConfig extends Fields {
  stream: string;
  kind: 'ordered' | 'simple';
  start: 'earliest' | 'latest' | 'time';
  start_time: string | null;
  session_timeout_seconds: number;
  paused: boolean;
}

/** A member. `instance` identifies the process that reads in its name. */
interface GroupMember {
  instance: number;
  joinedAt: number;
  heartbeatAt: number;
  shards: number[];
}

/** Group, member, instance, and the next offset and the claim of each shard. */
type Token = [string, string, number, [number, number, number][]];

/** A consumer group. */
export class MemoryGroup extends Defined<MemoryGroupConfig> {
  readonly #streamOf: (name: string) => MemoryStream;
  readonly #first: Positions;
  readonly #members = new Map<string, GroupMember>();
  readonly #committed: Positions = new Map();
  readonly #claims = new Map<number, number>();
  readonly #bookmarks = new Map<string, Fields>();
  #number = 0;

  constructor(name: string, config: MemoryGroupConfig, now: Clock, streamOf: (name: string) => MemoryStream) {
    super(name, config, now);
    this.#streamOf = streamOf;
    this.#first = this.#start();
  }

  #start(): Positions {
    const { start, start_time: time } = this.config;
    if (start === 'time') return this.stream.positionsAt(Date.parse(time ?? ''));
    return start === 'latest' ? this.stream.ends() : this.stream.starts();
  }

  /** Stream that the group reads. Throws MemoryProblem. */
  get stream(): MemoryStream {
    return this.#streamOf(this.config.stream);
  }

  /** Next offset to read of each shard. */
  get positions(): Positions {
    return new Map([...this.#first, ...this.#committed]);
  }

  // ── Members ──

  /** Return the next records of a member's shards; the first fetch joins the group. */
  fetch(query: URLSearchParams): Fields {
    const name = query.get('member') ?? '';
    if (name === '' || this.config.kind !== 'ordered') throw unsupported('fetch without a member');
    const conditions = FILTERS.filter((condition) => query.has(condition));
    if (conditions.length > 0) throw unsupported(`fetch by ${conditions.join(', ')}`);
    const after = query.get('after') ?? '';
    const member = this.#joined(name, (query.get('token') ?? '') || after);
    const shards = this.config.paused ? [] : [...member.shards];
    const positions: Positions = new Map(shards.map((shard) => [shard, this.positions.get(shard) ?? 0]));
    const read = after === '' ? [] : decodeCursor<Token>(after)[3];
    for (const [shard, offset] of read) if (positions.has(shard)) positions.set(shard, offset);
    const { records, gaps } = this.stream.since(positions, limitOf(query));
    const places = [...positions].map(([shard, offset]) => [shard, offset, this.#claims.get(shard)]);
    return {
      records: records.map((record) => shownRecord(record)),
      member: name,
      generation: member.instance,
      shards,
      token: encodeCursor(this.name, name, member.instance, places),
      behind_seconds: 0,
      tier: 'hot',
      gaps,
    };
  }

  /** Return a member; without a token it is a new process that replaces another. */
  #joined(name: string, token: string): GroupMember {
    this.#removeSilent();
    const now = this.now();
    let member = this.#members.get(name);
    if (member === undefined || token === '') {
      member = { instance: ++this.#number, joinedAt: now, heartbeatAt: now, shards: [] };
      this.#members.set(name, member);
      this.#assign();
    } else if (decodeCursor<Token>(token)[2] !== member.instance) {
      throw new MemoryProblem('stale_generation', 'Another process reads as this member.');
    }
    member.heartbeatAt = now;
    return member;
  }

  #removeSilent(): void {
    const since = this.now() - this.config.session_timeout_seconds * 1000;
    const silent = [...this.#members].filter(([, { heartbeatAt }]) => heartbeatAt <= since);
    for (const [name] of silent) this.#members.delete(name);
    if (silent.length > 0) this.#assign();
  }

  /** Distribute the shards; a shard that changes its owner has a new claim. */
  #assign(): void {
    const owners = this.#owners();
    const members = [...this.#members].sort(([one], [other]) => (one < other ? -1 : 1));
    for (const [, member] of members) member.shards = [];
    for (const shard of this.positions.keys()) {
      const [name, member] = members[shard % members.length] ?? [];
      member?.shards.push(shard);
      if (name !== undefined && owners.get(shard) !== name) this.#claims.set(shard, ++this.#number);
    }
  }

  #owners(): Map<number, string> {
    return new Map([...this.#members].flatMap(([name, { shards }]) => shards.map((shard) => [shard, name])));
  }

  /** Remove a member, unless another process has its name. */
  leave(name: string, generation: string | null): void {
    const member = this.#member(name);
    if (generation !== null && Number(generation) !== member.instance)
      throw new MemoryProblem('stale_generation', 'Another process reads as this member.');
    this.#members.delete(name);
    this.#assign();
  }

  #member(name: string): GroupMember {
    const member = this.#members.get(name);
    if (member === undefined) throw new MemoryProblem('member_unknown', `The member '${name}' is unknown.`);
    return member;
  }

  // ── Offsets ──

  /** Commit a token, or the offsets of a simple group. Throws the first rejection if there is nothing else. */
  commit({ token, offsets }: { token?: string; offsets?: { shard: number; offset: number }[] }): Fields {
    const results = token ? this.#commitToken(token) : (offsets ?? []).map((each) => this.#commitOffset(each));
    const problems = results.flatMap(({ problem }) => problem ?? []);
    if (problems[0] !== undefined && problems.length === results.length) throw problems[0];
    const shown = results.map(({ problem, ...result }) => (problem ? { ...result, error: problem.item } : result));
    return { offsets: shown, failed: problems.length };
  }

  #commitToken(token: string): CommitResult[] {
    const [, name, instance, places] = decodeCursor<Token>(token);
    if (this.#member(name).instance !== instance) throw new MemoryProblem('stale_generation', STALE);
    return places.map(([shard, offset, claim]) => {
      if (this.#claims.get(shard) !== claim) return { shard, problem: new MemoryProblem('stale_generation', STALE) };
      this.#committed.set(shard, offset);
      return { shard, offset };
    });
  }

  #commitOffset({ shard, offset }: { shard: number; offset: number }): CommitResult {
    const end = this.stream.shard(shard).next;
    if (offset > end)
      return { shard, problem: new MemoryProblem('offset_out_of_range', `The shard's next offset is ${end}.`) };
    this.#committed.set(shard, offset);
    return { shard, offset };
  }

  /** Set the offsets to a place; members continue there. */
  reset(body: Fields): Fields {
    const chosen = body.shards as number[] | null | undefined;
    const before = this.positions;
    const after = [...this.#places(body)].filter(([shard]) => !chosen || chosen.includes(shard));
    for (const [shard, offset] of body.dry_run === true ? [] : after) {
      this.#committed.set(shard, offset);
      this.#claims.set(shard, ++this.#number);
    }
    const shards = after.map(([shard, offset]) => ({ shard, before: before.get(shard), after: offset, expired: 0 }));
    return { dry_run: body.dry_run === true, shards };
  }

  #places(body: Fields): Positions {
    if (body.to === 'earliest') return this.stream.starts();
    if (body.to === 'latest') return this.stream.ends();
    if (body.to === 'time') return this.stream.positionsAt(Date.parse(body.time as string));
    const positions = body.to === 'bookmark' ? this.#bookmark(body.bookmark as string).positions : body.offsets;
    return new Map(Object.entries(positions as Record<string, number>).map(([shard, at]) => [Number(shard), at]));
  }

  // ── Bookmarks ──

  /** Save the current positions, or others. */
  putBookmark(name: string, { positions }: Fields): Fields {
    const saved = { name, positions: positions ?? Object.fromEntries(this.positions), created_at: moment(this.now()) };
    this.#bookmarks.set(name, saved);
    return saved;
  }

  /** Return the bookmarks by name. */
  bookmarks(): Fields[] {
    return [...this.#bookmarks.keys()].sort().map((name) => this.#bookmark(name));
  }

  /** Delete a bookmark. Throws MemoryProblem. */
  deleteBookmark(name: string): void {
    this.#bookmark(name);
    this.#bookmarks.delete(name);
  }

  #bookmark(name: string): Fields {
    const saved = this.#bookmarks.get(name);
    if (saved === undefined) throw new MemoryProblem('bookmark_not_found', `The bookmark '${name}' does not exist.`);
    return saved;
  }

  // ── Looking ──

  /** Return the configuration, the members, and the owner of each shard. */
  details(): Fields {
    this.#removeSilent();
    const owners = this.#owners();
    const members = [...this.#members].map(([member, { joinedAt, heartbeatAt, shards }]) => ({
      member,
      static: false,
      disconnected: false,
      joined_at: moment(joinedAt),
      heartbeat_at: moment(heartbeatAt),
      assigned: shards,
      revoked: [],
      away: false,
    }));
    const shards = [...this.positions.keys()].map((shard) => ({
      shard,
      member: owners.get(shard) ?? null,
      committed: this.#committed.get(shard) ?? null,
      finished: false,
    }));
    const generation = Math.max(0, ...[...this.#members.values()].map(({ instance }) => instance));
    return { ...this.shown(), generation, members, shards };
  }

  /** Return the lag in records and in time, by shard. */
  lag(): Fields {
    const shards = [...this.positions].map(([shard, position]) => this.#lag(shard, position));
    const losses = shards.flatMap(({ loss_in_seconds: loss }) => loss ?? []);
    return {
      records: shards.reduce((sum, { records }) => sum + records, 0),
      lag_seconds: Math.max(0, ...shards.map(({ lag_seconds: seconds }) => seconds)),
      loss_in_seconds: losses.length > 0 ? Math.min(...losses) : null,
      shards,
    };
  }

  #lag(index: number, position: number) {
    const { start, next: tip } = this.stream.shard(index);
    const waiting = this.stream.shard(index).since(position);
    const { retention_seconds: retention } = this.stream.config;
    const seconds = waiting[0] === undefined ? 0 : (this.now() - waiting[0].arrivedAt) / 1000;
    return {
      shard: index,
      member: this.#owners().get(index) ?? null,
      committed: this.#committed.get(index) ?? null,
      position,
      start,
      tip,
      records: waiting.length,
      expired: Math.max(0, start - position),
      lag_seconds: seconds,
      loss_in_seconds: waiting.length === 0 || retention === null ? null : retention - seconds,
      finished: false,
    };
  }
}

interface CommitResult {
  shard: number;
  offset?: number;
  problem?: MemoryProblem;
}
