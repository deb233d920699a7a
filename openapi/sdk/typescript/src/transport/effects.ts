/** Effect of a repeated call, and how long the service may wait before it responds. */

import { REPEATS } from '../tables.js';

export const IDEMPOTENCY_KEY = 'Idempotency-Key';

const RECEIVE = /\/receive$/;
const REQUEST = /\/requests$/;
const RECEIVE_WAIT_S = 20; // the most that a queue's configuration may request, and the default of a request
const WAIT = 'wait_seconds';

export interface Effect {
  /** Whether a repeat has no further effect, so that it may follow an unknown outcome. */
  mayRepeat: boolean;
  waitSeconds: number;
}

/** Return the effect of a request; set an idempotency key if it takes one and has none. */
export function effectOf(request: Request, headers: Headers, body: ArrayBuffer | undefined): Effect {
  const { pathname, searchParams } = new URL(request.url);
  const { kind, guards } = repeatOf(request.method, pathname);
  const waitSeconds = Number(searchParams.get(WAIT)) || 0;
  if (kind === 'keyed') {
    if (!headers.has(IDEMPOTENCY_KEY)) headers.set(IDEMPOTENCY_KEY, randomKey());
    const isRequest = REQUEST.test(pathname);
    return { mayRepeat: true, waitSeconds: isRequest ? bodyWait(fieldsOf(body)) : waitSeconds };
  }
  if (kind !== 'guarded') return { mayRepeat: kind === 'safe', waitSeconds };
  const fields = fieldsOf(body);
  const isReceive = RECEIVE.test(pathname);
  return {
    mayRepeat: guards.some((name) => (fields[name] ?? '') !== ''),
    waitSeconds: isReceive ? bodyWait(fields) : waitSeconds,
  };
}

function bodyWait(fields: Record<string, unknown>): number {
  return Number(fields[WAIT] ?? RECEIVE_WAIT_S);
}

interface Repeat {
  names: string[];
  kind: string;
  guards: readonly string[];
}

const REPEATS_BY_SHAPE = new Map<string, Repeat[]>();
for (const [method, template, kind, guards] of REPEATS) {
  const names = template.split('/');
  const shape = `${method} ${names.length}`;
  REPEATS_BY_SHAPE.set(shape, [...(REPEATS_BY_SHAPE.get(shape) ?? []), { names, kind, guards }]);
}

function repeatOf(method: string, path: string): Pick<Repeat, 'kind' | 'guards'> {
  const words = path.split('/');
  const repeats = REPEATS_BY_SHAPE.get(`${method} ${words.length}`) ?? [];
  const fits = ({ names }: Repeat) => names.every((name, place) => name.startsWith('{') || name === words[place]);
  return repeats.find(fits) ?? { kind: '', guards: [] };
}

function fieldsOf(body: ArrayBuffer | undefined): Record<string, unknown> {
  try {
    return (JSON.parse(new TextDecoder().decode(body)) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** A random key of 32 hexadecimal digits. `crypto.randomUUID` exists in secure contexts only. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
