/** Subjects of messages and their patterns: words with dots between, and the wildcards `*`, `#` and `>`. */

import { MemoryProblem, invalid } from '../problems.js';

const BYTES_MAX = 255;
const WORDS_MAX = 32;
// eslint-disable-next-line no-control-regex
const TEXT = /^[^\s\u0000-\u001f\u007f-\u009f]*$/u;
const WILDCARD = /[*#>]/;

/** Check a subject, which may be empty. Throws MemoryProblem. */
export function checkSubject(subject: string): void {
  const detail = textFault(subject) ?? (WILDCARD.test(subject) ? "A subject must not contain '*', '#' or '>'" : undefined);
  if (detail !== undefined) throw invalid('/subject', detail, 'invalid');
}

/** Check a pattern. Throws MemoryProblem. */
export function checkPattern(pattern: string, pointer: string): void {
  const words = pattern.split('.');
  let detail = textFault(pattern);
  if (words.some((word) => word.length > 1 && WILDCARD.test(word)))
    detail ??= "A wildcard '*', '#' or '>' must be a whole word";
  if (words.slice(0, -1).includes('>')) detail ??= "'>' must be the last word";
  if (detail !== undefined) throw matchInvalid(pointer, detail);
}

/** Return the problem of an invalid match. */
export function matchInvalid(pointer: string, detail: string, code = 'invalid'): MemoryProblem {
  return new MemoryProblem('match_invalid', 'The match is invalid.', { errors: [{ pointer, detail, code }] });
}

function textFault(text: string): string | undefined {
  if (!TEXT.test(text)) return 'A subject must not contain whitespace or control characters';
  if (new TextEncoder().encode(text).length > BYTES_MAX) return `At most ${BYTES_MAX} bytes`;
  const words = wordsOf(text);
  if (words.includes('')) return 'A subject is words with one dot between each two';
  return words.length > WORDS_MAX ? `At most ${WORDS_MAX} words` : undefined;
}

/** Return whether a pattern matches a subject. */
export function matchesSubject(pattern: string, subject: string): boolean {
  const parts = wordsOf(pattern).flatMap((word) => (word === '>' ? ['*', '#'] : [word]));
  let states = closure([0], parts);
  for (const word of wordsOf(subject)) {
    states = closure(
      [...states].flatMap((state) => steps(state, word, parts)),
      parts,
    );
  }
  return states.has(parts.length);
}

function wordsOf(text: string): string[] {
  return text === '' ? [] : text.split('.');
}

function steps(state: number, word: string, parts: string[]): number[] {
  const part = parts[state];
  if (part === '#') return [state];
  return part === '*' || part === word ? [state + 1] : [];
}

/** Add the states after each `#`, which may match no word. */
function closure(states: number[], parts: string[]): Set<number> {
  const closed = new Set(states);
  parts.forEach((part, state) => {
    if (part === '#' && closed.has(state)) closed.add(state + 1);
  });
  return closed;
}
