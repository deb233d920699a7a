/**
 * Errors of the client.
 *
 *   MillstreamError
 *   ├── ConnectionFailed          the service is unreachable: nothing happened
 *   │   └── NeverConnected        and was never reached by this client
 *   ├── OutcomeUnknown            no response: the call may have taken effect, and a repeat is not safe
 *   ├── NotMillstream             another service responded
 *   ├── Refused                   the service responded with a problem
 *   │   ├── BadRequest            400, 405, 413, 415, 422: the request is invalid
 *   │   ├── Unauthenticated 401   ├── Forbidden 403   ├── NotFound 404
 *   │   ├── Conflict 409          the state of the resource does not allow the call
 *   │   │   └── AlreadyExists 412 the object to create exists with other settings
 *   │   ├── Gone 410, 416         the offset has expired, or does not exist yet
 *   │   ├── PreconditionFailed 412
 *   │   ├── Limited 429           over a limit: retry later
 *   │   ├── ServerFailed 5xx      and Unavailable 503, which can be retried
 *   │   └── TimedOut 504          the call may have taken effect
 *   ├── ItemRefused               one item of a batch was rejected
 *   ├── PartlyRefused             some items of a batch were rejected
 *   ├── NoReply                   no reply to a request arrived before its deadline
 *   └── Lost                      a subscription cannot continue
 */

import type { FieldChange, ItemError } from './generated/types.gen.js';

/** A problem (RFC 9457) returned by the service. */
export interface Problem {
  status?: number;
  code?: string;
  detail?: string;
  retryable?: boolean;
  request_id?: string;
  outcome?: string;
  errors?: readonly Fault[];
  current?: unknown;
  changes?: readonly FieldChange[];
}

/** A fault of the input: its location (a JSON Pointer), a description, and its code. */
export interface Fault {
  pointer?: string;
  detail?: string;
  code?: string;
}

/** The call failed. */
export class MillstreamError extends Error {
  /** The stable error code; empty if the service did not respond. */
  readonly code: string;
  /** The HTTP status; 0 if the service did not respond. */
  readonly status: number;
  readonly detail: string;
  readonly requestId: string;
  readonly retryable: boolean;
  /** Whether the call may have taken effect. */
  readonly outcomeUnknown: boolean;
  /** Faults of the input. */
  readonly errors: readonly Fault[];
  readonly problem: Problem;

  constructor(problem: Problem, options?: ErrorOptions) {
    super(sentenceOf(problem), options);
    this.problem = problem;
    this.code = problem.code ?? '';
    this.status = problem.status ?? 0;
    this.detail = problem.detail ?? '';
    this.requestId = problem.request_id ?? '';
    this.retryable = problem.retryable ?? false;
    this.outcomeUnknown = problem.outcome === 'unknown';
    this.errors = problem.errors ?? [];
  }
}

function sentenceOf({ detail, code, status, errors = [], changes = [] }: Problem): string {
  const places = [
    ...errors.filter((fault) => fault.pointer).map((fault) => `${fault.pointer}: ${fault.detail}`),
    ...changes.map(
      ({ pointer, before, after }) => `${pointer}: ${JSON.stringify(before)}, not ${JSON.stringify(after)}`,
    ),
  ];
  const text = detail ?? `The answer was ${status ?? 'no problem document'}.`;
  return `${text}${places.length > 0 ? ` [${places.join('; ')}]` : ''}${code ? ` (${code})` : ''}`;
}

/** The service is unreachable. Nothing happened. */
export class ConnectionFailed extends MillstreamError {
  constructor(detail: string, more: Problem = {}, options?: ErrorOptions) {
    super({ detail, retryable: true, ...more }, options);
  }
}

/** No connection was ever made: the service is not running, or has another URL. Browsers do not show if nothing was sent. */
export class NeverConnected extends ConnectionFailed {
  constructor(detail: string, outcomeUnknown: boolean, options?: ErrorOptions) {
    super(detail, { retryable: false, ...(outcomeUnknown ? { outcome: 'unknown' } : {}) }, options);
  }
}

/** The call was sent but got no response: it may have taken effect. */
export class OutcomeUnknown extends MillstreamError {
  constructor(detail: string, options?: ErrorOptions) {
    super({ detail, retryable: true, outcome: 'unknown' }, options);
  }
}

/** Something answered at the URL that is not Millstream, or an incompatible version of it. */
export class NotMillstream extends MillstreamError {
  readonly url: string;
  readonly contentType: string;

  constructor(url: string, status: number, contentType: string) {
    const answer = `HTTP ${status}, ${contentType || 'no content type'}`;
    super({ status, detail: `${url} answers, but it is not Millstream (${answer})` });
    this.url = url;
    this.contentType = contentType;
  }
}

/** The service responded with a problem, or with an unexpected status. */
export class Refused extends MillstreamError {}

/** The request is invalid. */
export class BadRequest extends Refused {}

/** The credential is missing or invalid. */
export class Unauthenticated extends Refused {}

/** The credential does not have the required permission. */
export class Forbidden extends Refused {}

/** The resource does not exist. */
export class NotFound extends Refused {}

/** The state of the resource does not allow the call. */
export class Conflict extends Refused {}

/** The object to create exists. `changes` are the settings that differ, `current` is the object. */
export class AlreadyExists extends Conflict {
  readonly current: unknown;
  readonly changes: readonly FieldChange[];

  constructor(problem: Problem, options?: ErrorOptions) {
    super({ ...problem, code: 'already_exists' }, options);
    this.current = problem.current;
    this.changes = problem.changes ?? [];
  }
}

/** The offset has expired, or does not exist yet. */
export class Gone extends Refused {}

/** A precondition of the call does not hold. */
export class PreconditionFailed extends Refused {}

/** The call exceeds a limit. */
export class Limited extends Refused {}

/** The service failed. */
export class ServerFailed extends Refused {}

/** The service or one of its stores is unavailable. */
export class Unavailable extends ServerFailed {}

/** The service's store timed out: the call may have taken effect. */
export class TimedOut extends ServerFailed {}

/** One item of a batch was rejected. */
export class ItemRefused extends MillstreamError {
  constructor(error: ItemError) {
    super({ code: error.code, detail: error.detail, retryable: error.retryable });
  }
}

/** No reply to a request arrived before its deadline. */
export class NoReply extends MillstreamError {
  constructor() {
    super({ detail: 'No reply arrived before the deadline.' });
  }
}

/** Some items of a batch were rejected. `results` has one entry per item, in order: a result or an ItemRefused. */
export class PartlyRefused<Result = unknown> extends MillstreamError {
  readonly results: readonly (Result | ItemRefused)[];

  constructor(results: readonly (Result | ItemRefused)[]) {
    const refused = results.filter((result) => result instanceof ItemRefused);
    const detail = `${refused.length} of ${results.length} were refused; the first: ${refused[0]?.message}`;
    super({ detail, retryable: refused.every((error) => error.retryable) });
    this.results = results;
  }
}

/** The subscription cannot continue. `closeCode`: the close code of its WebSocket. */
export class Lost extends MillstreamError {
  readonly closeCode: number;

  constructor(closeCode: number, reason: string) {
    super({ detail: `${reason || 'The connection was closed'} (${closeCode})` });
    this.closeCode = closeCode;
  }
}

// not `constructor.name`, which minifiers change
for (const [name, kind] of Object.entries({
  MillstreamError,
  ConnectionFailed,
  NeverConnected,
  OutcomeUnknown,
  NotMillstream,
  Refused,
  BadRequest,
  Unauthenticated,
  Forbidden,
  NotFound,
  Conflict,
  AlreadyExists,
  Gone,
  PreconditionFailed,
  Limited,
  ServerFailed,
  Unavailable,
  TimedOut,
  ItemRefused,
  PartlyRefused,
  Lost,
})) {
  Object.defineProperty(kind.prototype, 'name', { value: name, configurable: true, writable: true });
}

const KINDS: Record<number, typeof Refused> = {
  400: BadRequest,
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  405: BadRequest,
  409: Conflict,
  410: Gone,
  412: PreconditionFailed,
  413: BadRequest,
  415: BadRequest,
  416: Gone,
  422: BadRequest,
  429: Limited,
  503: Unavailable,
  504: TimedOut,
};
const GATEWAYS = new Set([502, 503, 504]);

/** Return the error for a problem. */
export function refusalOf(problem: Problem): Refused {
  const { status = 0 } = problem;
  if (status === 412 && problem.current !== undefined) return new AlreadyExists(problem);
  const Kind = KINDS[status] ?? (status >= 500 ? ServerFailed : Refused);
  return new Kind(problem);
}

/** Return the problem for the decoded body of a response outside 2xx, which a proxy may have made. */
export function problemOf(status: number, body: unknown): Problem {
  if (typeof body === 'object' && body !== null && 'code' in body) return { ...(body as Problem), status };
  const detail = (body as { detail?: unknown } | null | undefined)?.detail;
  return {
    status,
    code: `http_${status}`,
    retryable: status === 429 || GATEWAYS.has(status),
    ...(typeof detail === 'string' ? { detail } : {}),
    ...(GATEWAYS.has(status) ? { outcome: 'unknown' } : {}),
  };
}
