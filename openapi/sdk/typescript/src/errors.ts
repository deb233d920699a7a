/**
 * Errors of the client.
 *
 *   MillstreamError        the service rejected the call, or failed
 *   ├── ConnectionFailed   no response
 *   └── NotMillstream      another service responded
 *   Closed                 a subscription was closed permanently
 */

/** A problem (RFC 9457) returned by the service. */
export interface Problem {
  status?: number;
  code?: string;
  detail?: string;
  retryable?: boolean;
  request_id?: string;
  outcome?: string;
  errors?: readonly Fault[];
}

/** A fault of the input: its location (a JSON Pointer), a description, and its code. */
export interface Fault {
  pointer?: string;
  detail?: string;
  code?: string;
}

/** The service rejected the call or failed. */
export class MillstreamError extends Error {
  readonly code: string;
  readonly status: number;
  readonly retryable: boolean;
  /** Whether the call may have taken effect. */
  readonly outcomeUnknown: boolean;
  readonly requestId: string;
  readonly errors: readonly Fault[];
  readonly problem: Problem;

  constructor(problem: Problem, options?: ErrorOptions) {
    super(sentenceOf(problem), options);
    this.name = new.target.name;
    this.problem = problem;
    this.code = problem.code ?? '';
    this.status = problem.status ?? 0;
    this.retryable = problem.retryable ?? false;
    this.outcomeUnknown = problem.outcome === 'unknown';
    this.requestId = problem.request_id ?? '';
    this.errors = problem.errors ?? [];
  }
}

function sentenceOf({ detail, code, status, errors = [] }: Problem): string {
  const places = errors.filter((fault) => fault.pointer).map((fault) => `${fault.pointer}: ${fault.detail}`);
  const text = detail ?? `The answer was ${status ?? 'no problem document'}.`;
  return `${text}${places.length > 0 ? ` [${places.join('; ')}]` : ''}${code ? ` (${code})` : ''}`;
}

/** No response came. */
export class ConnectionFailed extends MillstreamError {
  constructor(detail: string, outcomeUnknown: boolean, options?: ErrorOptions) {
    super({ detail, retryable: true, ...(outcomeUnknown ? { outcome: 'unknown' } : {}) }, options);
  }
}

/** Something answered at the URL that is not Millstream. */
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

/** A subscription was closed permanently. `code`: the close code of its WebSocket. */
export class Closed extends Error {
  readonly code: number;

  constructor(code: number, reason: string) {
    super(`${reason || 'The connection was closed'} (${code})`);
    this.name = 'Closed';
    this.code = code;
  }
}

/** Return the error for the `error` of a call with `throwOnError: false`. */
export function errorOf(answer: unknown, status?: number): Error {
  if (answer instanceof Error) return answer;
  const problem = typeof answer === 'object' && answer !== null ? (answer as Problem) : {};
  return new MillstreamError(status === undefined ? problem : { status, ...problem });
}

/** Return the sentence for a service that cannot be reached. */
export function unreachable(url: string, error: unknown): string {
  return `Cannot reach ${url}: ${reasonOf(error)}`;
}

/** Return what to do about a service that never responded. */
export function firstContactHint(url: string): string {
  const cors = isForeignPage(url) ? ` Does its MILLSTREAM_CORS_ORIGINS list ${pageOrigin()}?` : '';
  return `Is the service running? Start one with \`millstream up\`.${cors}`;
}

/** Whether this is a page of another origin, whose calls need CORS and whose WebSockets do not. */
export function isForeignPage(url: string): boolean {
  const origin = pageOrigin();
  return origin !== undefined && origin !== new URL(url).origin;
}

/** The origin of the page, in a browser. */
export function pageOrigin(): string | undefined {
  const origin = (globalThis as { location?: { origin?: string } }).location?.origin;
  return origin?.startsWith('http') ? origin : undefined;
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : String(error));
}
