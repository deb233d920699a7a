/** Spreads of in-memory routes: members of a target, of which each message goes to one. */

import { type Fields } from '../definitions.js';
import { isObject } from './matches.js';
import { invalid } from '../problems.js';

export const KINDS = ['queue', 'stream', 'topic'] as const;
const MEMBERS_MIN = 2;
const MEMBERS_MAX = 32;
const WEIGHT_MAX = 1_000;
const BY = ['key', 'subject', 'random'];

/** Target of a route with its defaults; a member of a spread has one name. */
export interface MemoryTarget extends Fields {
  queue?: string | null;
  stream?: string | null;
  topic?: string | null;
  spread?: MemoryMember[];
  by?: 'key' | 'subject' | 'random';
}

/** Member of a spread with its defaults. */
export interface MemoryMember extends MemoryTarget {
  weight: number;
}

/** Return the members of a spread, or the target itself. */
export function namedTargets(target: MemoryTarget): MemoryTarget[] {
  return target.spread ?? [target];
}

/** Return kind and name of a target, such as `queue:billing`. */
export function labelOf(target: MemoryTarget): string {
  const kind = KINDS.find((one) => typeof target[one] === 'string');
  return kind === undefined ? '' : `${kind}:${target[kind] as string}`;
}

/** Return a spread with its defaults. */
export function completedSpread(target: Fields): MemoryTarget {
  const spread = (target.spread as Fields[]).map((member) => {
    const names = KINDS.filter((kind) => typeof member[kind] === 'string').map((kind) => [kind, member[kind]]);
    return { ...Object.fromEntries(names), weight: member.weight ?? 1 } as MemoryMember;
  });
  return { queue: null, stream: null, topic: null, spread, by: (target.by ?? 'key') as MemoryTarget['by'] };
}

/**
 * Return the member that a text belongs to, by weighted rendezvous hashing: each draws an exponential variate with its weight
 * as the rate, and the lowest wins. The hash is a shorter one than the service's, so that the member may be another one there.
 */
export function choose(members: MemoryMember[], text: string): MemoryMember | undefined {
  const drawn = members.map((member) => ({ member, variate: variateOf(member, text) }));
  return drawn.sort((a, b) => a.variate - b.variate)[0]?.member;
}

function variateOf(member: MemoryMember, text: string): number {
  return -Math.log((hashOf(`${labelOf(member)}\0${text}`) + 0.5) / 2 ** 32) / member.weight;
}

/** Return the FNV-1a hash of a text, finished as MurmurHash3 does: similar texts differ in all bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Check the members of a spread. Throws MemoryProblem. */
export function checkSpread(target: Fields): void {
  const members = target.spread as Fields[];
  if (members.length < MEMBERS_MIN || members.length > MEMBERS_MAX)
    throw invalid('/target/spread', `A spread has ${MEMBERS_MIN} to ${MEMBERS_MAX} members`, 'out_of_range');
  if (isGiven(target.by) && !BY.includes(target.by as string))
    throw invalid('/target/by', "Expected 'key', 'subject' or 'random'", 'invalid');
  const labels = new Set<string>();
  for (const [number, member] of members.entries()) {
    const pointer = `/target/spread/${number}`;
    checkMember(member, pointer);
    const label = labelOf(member as MemoryTarget);
    if (labels.has(label)) throw invalid(pointer, 'The target is a member already', 'duplicate');
    labels.add(label);
  }
}

function checkMember(member: Fields, pointer: string): void {
  const given = isObject(member) ? Object.keys(member).filter((name) => isGiven(member[name])) : [];
  if (given.includes('url')) {
    const detail = 'A URL cannot be a member; let a queue be one, and a webhook post its messages';
    throw invalid(`${pointer}/url`, detail, 'not_supported');
  }
  const names = given.filter((name) => name !== 'weight');
  const unknown = names.find((name) => !KINDS.some((kind) => kind === name));
  if (unknown !== undefined) throw invalid(`${pointer}/${unknown}`, `Unknown field '${unknown}'`, 'unknown_field');
  if (names.length !== 1) throw invalid(pointer, 'Specify exactly one of queue, stream and topic', 'exclusive');
  const weight = Number(member.weight ?? 1);
  if (!(weight >= 1 && weight <= WEIGHT_MAX))
    throw invalid(`${pointer}/weight`, `A weight is 1 to ${WEIGHT_MAX}`, 'out_of_range');
}

function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined;
}
