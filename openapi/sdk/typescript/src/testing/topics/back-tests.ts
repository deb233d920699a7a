/** Back-tests of the in-memory service: matches evaluated on the messages that a log has. */

import type { Fields } from '../definitions.js';
import { invalid } from '../problems.js';
import { UNMATCHED, checkMatch, failedPaths } from './matches.js';
import { type PublishedMessage, documentOf } from './published.js';
import type { RoutedLog } from './routed-log.js';

const MESSAGES_MAX = 200_000;
const SAMPLES_MAX = 100;
const SAMPLES_DEFAULT = 10;
const FIELDS = new Set(['match', 'compare_with', 'start_time', 'end_time', 'samples_max']);

/** Messages that a match takes, of those that were evaluated. Gained and lost: none unless a route is compared. */
class BackTestResult {
  readonly #ids: { matched: string[]; gained?: string[]; lost?: string[] };
  readonly #failed = new Map<string, number>();
  #evaluated = 0;

  constructor(hasOther: boolean) {
    this.#ids = { matched: [], ...(hasOther ? { gained: [], lost: [] } : {}) };
  }

  /** Add a message that fails some conditions, and that the compared route takes or not. */
  add(id: string, failed: Set<string>, isOfOther: boolean): void {
    this.#evaluated += 1;
    for (const path of failed) this.#failed.set(path, (this.#failed.get(path) ?? 0) + 1);
    if (failed.size === 0) this.#ids.matched.push(id);
    if (failed.size === 0 && !isOfOther) this.#ids.gained?.push(id);
    if (failed.size > 0 && isOfOther) this.#ids.lost?.push(id);
  }

  /** Return the result as the API does. */
  shown(samplesMax: number, complete: boolean): Fields {
    const { matched, gained, lost } = this.#ids;
    const sample = (ids: string[] = []) => ids.slice(0, samplesMax);
    const failed = [...this.#failed].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1));
    return {
      evaluated: this.#evaluated,
      ...{ matched: matched.length, gained: gained?.length ?? null, lost: lost?.length ?? null },
      failed_by_path: Object.fromEntries(failed),
      samples: { matched: sample(matched), gained: sample(gained), lost: sample(lost) },
      complete,
    };
  }
}

/** Back-test whose messages and matches are fixed. `compared`: the match of the route `compareWith`. */
export interface BackTest {
  topic: string;
  logId: string;
  match: unknown;
  compareWith: string | null;
  compared: unknown;
  startTime: string | null;
  endTime: string | null;
  samplesMax: number;
  messages: PublishedMessage[];
}

/** Return the back-test of a request. Throws MemoryProblem. */
export function backTestOf(topic: RoutedLog, fields: Fields): BackTest {
  const unknown = Object.keys(fields).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) throw invalid(`/${unknown}`, `Unknown field '${unknown}'`, 'unknown_field');
  const { match = null, compare_with, start_time, end_time } = fields as Record<string, string | null | undefined>;
  const samplesMax = bounded(fields, 'samples_max', SAMPLES_DEFAULT, SAMPLES_MAX);
  checkMatch(match);
  checkUnmatched(topic, match, '/match');
  const compared: unknown = typeof compare_with === 'string' ? topic.routes.get(compare_with).config.match : null;
  checkUnmatched(topic, compared, '/compare_with');
  const [startTime, endTime] = [start_time ?? null, end_time ?? null];
  const messages = between(topic.messages, startTime, endTime);
  const compareWith = compare_with ?? null;
  return { topic: topic.name, logId: topic.log.id, match, compareWith, compared, startTime, endTime, samplesMax, messages };
}

/** Evaluate the matches on the messages that the topic still has. Throws MemoryProblem. */
export function evaluate(test: BackTest, topic: RoutedLog, messagesMax = Infinity): Fields {
  const result = new BackTestResult(test.compareWith !== null);
  const stored = new Set(topic.messages.map(({ id }) => id));
  const evaluated = test.messages.filter(({ id }) => stored.has(id)).slice(0, messagesMax);
  for (const message of evaluated)
    result.add(message.id, failedOf(topic, test.match, message), failedOf(topic, test.compared, message).size === 0);
  return result.shown(test.samplesMax, evaluated.length === test.messages.length);
}

/** Return the result before any message is evaluated. */
export function unevaluated({ compareWith, samplesMax }: BackTest): Fields {
  return new BackTestResult(compareWith !== null).shown(samplesMax, false);
}

/** Return the result of the back-test that a call waits for. Throws MemoryProblem. */
export function backTest(topic: RoutedLog, { messages_max, ...fields }: Fields): Fields {
  const messagesMax = bounded({ messages_max }, 'messages_max', MESSAGES_MAX, MESSAGES_MAX);
  return evaluate(backTestOf(topic, fields), topic, messagesMax);
}

function bounded(fields: Fields, name: string, preset: number, most: number): number {
  const number = Number(fields[name] ?? preset);
  if (!(number >= 0 && number <= most)) throw invalid(`/${name}`, `Must be 0 to ${most}`, 'out_of_range');
  return number;
}

function checkUnmatched(topic: RoutedLog, match: unknown, pointer: string): void {
  if (topic.isOfStream && match === UNMATCHED)
    throw invalid(pointer, 'A stream does not store which of its records were unmatched', 'not_supported');
}

/** Return the messages that were accepted between two times, by shard. */
function between(messages: PublishedMessage[], startTime: string | null, endTime: string | null): PublishedMessage[] {
  const start = startTime === null ? 0 : Date.parse(startTime);
  const end = endTime === null ? Infinity : Date.parse(endTime);
  return messages
    .filter(({ record }) => record.arrivedAt >= start && record.arrivedAt < end)
    .sort(({ record: one }, { record: other }) => one.shard - other.shard || one.offset - other.offset);
}

/** Return the paths of the conditions that a message fails; empty if the match takes it. */
function failedOf(topic: RoutedLog, match: unknown, { record, copies }: PublishedMessage): Set<string> {
  if (match === UNMATCHED) return new Set(copies.length > 0 ? ['routes'] : []);
  return failedPaths(match, documentOf(record, topic.meta));
}
