/** Matches of routes: subjects completely, and the operators of filters that compare one value. */

import type { Fields } from '../definitions.js';
import { unsupported } from '../problems.js';
import { checkPattern, matchInvalid, matchesSubject } from './subjects.js';

export const UNMATCHED = 'unmatched';
const MATCHES_MAX = 100;
const FIELDS = new Set(['subject', 'filter', 'where']);

type Test = (value: unknown) => boolean;

/** Check the match of a route. Throws MemoryProblem, also for what is not in memory. */
export function checkMatch(match: unknown): void {
  if (match === UNMATCHED) return;
  for (const [pointer, item] of itemsOf(match)) {
    if (!isObject(item)) throw matchInvalid(pointer, 'A match must be an object');
    for (const name of Object.keys(item))
      if (!FIELDS.has(name)) throw matchInvalid(`${pointer}/${name}`, 'Unknown field', 'unknown_field');
    if (item.where) throw unsupported('match with where');
    patternsOf(item).forEach((pattern, nth) => {
      const place = `${pointer}/subject${Array.isArray(item.subject) ? `/${nth}` : ''}`;
      if (typeof pattern !== 'string') throw matchInvalid(place, 'A subject pattern must be a string');
      checkPattern(pattern, place);
    });
    if (item.filter !== undefined && item.filter !== null) checkFilter(item.filter, `${pointer}/filter`);
  }
}

/** Return whether a match, which is not UNMATCHED, takes a message: its document. */
export function matches(match: unknown, document: Fields): boolean {
  const items = itemsOf(match);
  return items.length === 0 || items.some(([, item]) => failed(item as Fields, document).next().done === true);
}

/** Return the paths of conditions that a message does not meet; empty if it is taken. */
export function failedPaths(match: unknown, document: Fields): Set<string> {
  const paths = itemsOf(match).map(([, item]) => [...failed(item as Fields, document)]);
  return new Set(paths.every(({ length }) => length > 0) ? paths.flat() : []);
}

function itemsOf(match: unknown): [string, unknown][] {
  if (match === undefined || match === null || (isObject(match) && Object.keys(match).length === 0)) return [];
  if (!Array.isArray(match)) return [['/match', match]];
  if (match.length < 1 || match.length > MATCHES_MAX)
    throw matchInvalid('/match', `Specify 1 to ${MATCHES_MAX} matches`, 'out_of_range');
  return match.map((item, nth) => [`/match/${nth}`, item]);
}

function patternsOf({ subject }: Fields): unknown[] {
  if (subject === undefined || subject === null) return [];
  return Array.isArray(subject) ? subject : [subject];
}

/** Yield the paths of conditions of one match that a message does not meet. */
function* failed(item: Fields, document: Fields): Generator<string, void, void> {
  const patterns = patternsOf(item) as string[];
  const hasSubject = patterns.length === 0 || patterns.some((one) => matchesSubject(one, document.subject as string));
  if (!hasSubject) yield 'subject';
  if (item.filter) yield* failedFields(item.filter as Fields, document, '');
}

// ── Filters ──

function checkFilter(pattern: unknown, pointer: string): void {
  if (!isObject(pattern)) throw matchInvalid(pointer, 'Filter is not an object');
  if (Object.keys(pattern).length === 0) throw matchInvalid(pointer, 'Empty objects are not allowed');
  for (const [name, value] of Object.entries(pattern)) {
    const below = `${pointer}/${name}`;
    if (name === '$or' || name.includes('.')) throw unsupported(`filter with ${name}`);
    if (isObject(value)) checkFilter(value, below);
    else if (!Array.isArray(value)) throw matchInvalid(below, `"${name}" must be an object or an array`);
    else if (value.length === 0) throw matchInvalid(below, 'Empty arrays are not allowed');
    else value.forEach((term, nth) => void testOf(term, `${below}/${nth}`));
  }
}

/** Yield the paths of a pattern's fields that do not hold for an object. */
function* failedFields(pattern: Fields, value: unknown, parent: string): Generator<string, void, void> {
  const below = isObject(value) ? value : {};
  for (const [name, terms] of Object.entries(pattern)) {
    const field = below[name];
    if (isObject(terms)) {
      if (hasObjectInArray(field)) throw unsupported('filter on the objects of an array');
      yield* failedFields(terms, field, `${parent}${name}.`);
    } else if (!holds(terms as unknown[], field)) yield `${parent}${name}`;
  }
}

/** Return whether any of some terms holds for a value. */
function holds(terms: unknown[], value: unknown): boolean {
  const leaves = leavesOf(value);
  if (leaves.length === 0) return terms.some((term) => isObject(term) && term.exists === false);
  return terms.some((term) => leaves.some(testOf(term, '')));
}

function hasObjectInArray(value: unknown): boolean {
  return Array.isArray(value) && value.some((element) => isObject(element) || hasObjectInArray(element));
}

/** Return a scalar value, or the scalar elements of an array. */
function leavesOf(value: unknown): unknown[] {
  if (value === undefined || isObject(value)) return [];
  return Array.isArray(value) ? value.flatMap(leavesOf) : [value];
}

/** Return the test of a term. Throws MemoryProblem. */
function testOf(term: unknown, pointer: string): Test {
  if (!isObject(term)) return (value) => value === term;
  const [[operator, argument] = ['', undefined], ...others] = Object.entries(term);
  if (operator === '' || others.length > 0) throw matchInvalid(pointer, 'Only one key allowed in match expression');
  const test = operatorTest(operator, argument);
  if (test === undefined) throw unsupported(`filter with ${operator} of this kind`);
  return test;
}

/** Return the test of an operator; undefined if the in-memory service has it not with this argument. */
function operatorTest(operator: string, argument: unknown): Test | undefined {
  if (operator === 'exists') return typeof argument === 'boolean' ? () => argument : undefined;
  if (operator === 'numeric') return rangeTest(argument);
  if (operator === 'anything-but') {
    const given: unknown[] = Array.isArray(argument) ? argument : [argument];
    const isPlain = given.length > 0 && given.every((one) => typeof one === 'string' || typeof one === 'number');
    const excluded = new Set<unknown>(given);
    return isPlain ? (value) => !excluded.has(value) : undefined;
  }
  if (typeof argument !== 'string') return undefined;
  const tests: Record<string, (text: string) => boolean> = {
    prefix: (text) => text.startsWith(argument),
    suffix: (text) => text.endsWith(argument),
    'equals-ignore-case': (text) => text.toLowerCase() === argument.toLowerCase(),
  };
  const test = tests[operator];
  return test && ((value) => typeof value === 'string' && test(value));
}

const COMPARISONS: Record<string, (one: number, other: number) => boolean> = {
  '=': (one, other) => one === other,
  '<': (one, other) => one < other,
  '<=': (one, other) => one <= other,
  '>': (one, other) => one > other,
  '>=': (one, other) => one >= other,
};

function rangeTest(argument: unknown): Test | undefined {
  if (!Array.isArray(argument) || (argument.length !== 2 && argument.length !== 4)) return undefined;
  const tests: ((value: number) => boolean)[] = [];
  for (let nth = 0; nth < argument.length; nth += 2) {
    const compare = COMPARISONS[String(argument[nth])];
    const bound: unknown = argument[nth + 1];
    if (compare === undefined || typeof bound !== 'number') return undefined;
    tests.push((value) => compare(value, bound));
  }
  return (value) => typeof value === 'number' && tests.every((test) => test(value));
}

/** Return whether a value is a JSON object. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
