/** Errors of the client. */

/** A problem (RFC 9457) returned by the service. */
export interface Problem {
  status?: number;
  code?: string;
  detail?: string;
  retryable?: boolean;
  request_id?: string;
  outcome?: string;
}

/** The service rejected the call or failed. */
export class MillstreamError extends Error {
  readonly code: string;
  readonly status: number;
  readonly retryable: boolean;
  readonly requestId: string;
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.detail ?? 'The service refused'} (${problem.code ?? problem.status ?? 'unknown'})`);
    this.name = 'MillstreamError';
    this.problem = problem;
    this.code = problem.code ?? '';
    this.status = problem.status ?? 0;
    this.retryable = problem.retryable ?? false;
    this.requestId = problem.request_id ?? '';
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

/** Return the error for the `error` of a call of the generated client. */
export function errorOf(told: unknown): Error {
  if (told instanceof Error) return told;
  return new MillstreamError(typeof told === 'object' && told !== null ? (told as Problem) : {});
}
