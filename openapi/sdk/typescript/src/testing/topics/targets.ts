/** Targets of in-memory routes: queues, streams, topics and spreads, and what they lead to. */

import type { Fields } from '../definitions.js';
import { MemoryProblem, invalid, unsupported } from '../problems.js';
import { KINDS, type MemoryTarget, checkSpread, namedTargets } from './spreads.js';

/** Prefix of the stream that has the messages of a topic. */
export const OF_TOPIC = 'topic:';
/** Prefixes of the names under which a stream and a queue are the source of routes. */
export const OF_STREAM = 'stream:';
export const OF_QUEUE = 'queue:';

const SOURCES = { queue: OF_QUEUE, stream: OF_STREAM, topic: '' };
const FORBIDDEN = [
  ['stream', OF_TOPIC, 'A topic is written by publishing'],
  ['topic', OF_STREAM, 'Specify the stream as `stream`'],
  ['topic', OF_QUEUE, 'Specify the queue as `queue`'],
  ['queue', 'route:', 'The queue belongs to a route'],
] as const;

/** Check the form of a target. Throws MemoryProblem. */
export function checkTarget(target: Fields): void {
  const given = Object.entries(target).filter(([, value]) => value !== null && value !== undefined);
  for (const [name] of given) {
    if (name === 'url') throw unsupported('route to a URL');
    if (![...KINDS, 'spread', 'by'].includes(name)) throw invalid(`/target/${name}`, 'Only a URL has it', 'not_supported');
  }
  if (given.filter(([name]) => name !== 'by').length !== 1)
    throw invalid('/target', 'Specify exactly one of queue, stream, topic, spread and url', 'exclusive');
  if (Array.isArray(target.spread)) {
    checkSpread(target);
    for (const [number, member] of (target.spread as Fields[]).entries()) checkName(member, `/target/spread/${number}`);
  } else {
    if (given.length > 1) throw invalid('/target/by', 'Only a spread has it', 'not_supported');
    checkName(target, '/target');
  }
}

function checkName(target: Fields, pointer: string): void {
  for (const [kind, prefix, detail] of FORBIDDEN) {
    const name = target[kind];
    if (typeof name === 'string' && name.startsWith(prefix)) throw invalid(`${pointer}/${kind}`, detail, 'not_allowed');
  }
}

/**
 * Throw MemoryProblem if a target leads back to the source of routes with this name.
 *
 * `targetsOf`: the targets of the routes that the source of a name has.
 */
export function checkCycle(
  name: string,
  described: string,
  target: MemoryTarget,
  targetsOf: (name: string) => MemoryTarget[],
): void {
  const reached = new Set<string>();
  const pending = sourcesOf(target);
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    if (current === name) throw new MemoryProblem('route_cycle', `${described} would get its own messages.`);
    if (!reached.has(current)) pending.push(...targetsOf(current).flatMap(sourcesOf));
    reached.add(current);
  }
}

/** Return the names under which what gets copies may have routes itself. */
function sourcesOf(target: MemoryTarget): string[] {
  return namedTargets(target).flatMap((one) =>
    KINDS.filter((kind) => typeof one[kind] === 'string').map((kind) => SOURCES[kind] + (one[kind] as string)),
  );
}

/** Return the problem of a publication to a topic whose source is a stream or a queue. */
export function readOnly(): MemoryProblem {
  const detail = 'The source of the topic is a stream or a queue; append or send to that instead.';
  return new MemoryProblem('topic_read_only', detail);
}
