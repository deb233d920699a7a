/** Problems of the in-memory service, with the codes of the real one. */

const STATUSES: Record<string, number> = {
  bookmark_not_found: 404,
  group_not_found: 404,
  idempotency_key_reused: 422,
  invalid_cursor: 400,
  job_not_found: 404,
  job_refused: 409,
  member_unknown: 404,
  match_invalid: 422,
  message_not_found: 404,
  message_too_large: 413,
  not_in_memory: 501,
  offset_mismatch: 412,
  offset_out_of_range: 416,
  precondition_failed: 412,
  queue_not_found: 404,
  receipt_handle_expired: 409,
  receipt_handle_invalid: 422,
  reply_taken: 409,
  reply_too_late: 409,
  request_not_found: 404,
  route_cycle: 422,
  route_not_found: 404,
  shard_not_found: 404,
  stale_generation: 409,
  stream_not_found: 404,
  stream_read_only: 409,
  stream_recreated: 410,
  topic_not_found: 404,
  topic_read_only: 409,
  unroutable: 422,
  validation_failed: 422,
};
const CODES: Record<number, string> = {
  401: 'unauthenticated',
  403: 'forbidden',
  429: 'quota_exceeded',
  500: 'internal_error',
  503: 'storage_unavailable',
  504: 'storage_timeout',
};
const RETRYABLE = new Set([429, 503, 504]);
const UNKNOWN = new Set(['internal_error', 'storage_timeout']);

/** A rejection. `members` are added to the problem. */
export class MemoryProblem extends Error {
  readonly code: string;
  readonly status: number;
  readonly members: Record<string, unknown>;

  constructor(code: string, detail: string, members: Record<string, unknown> = {}, status = STATUSES[code] ?? 400) {
    super(detail);
    this.code = code;
    this.status = status;
    this.members = members;
  }

  /** The error of one item of a batch. */
  get item(): { code: string; detail: string; retryable: boolean } {
    return { code: this.code, detail: this.message, retryable: RETRYABLE.has(this.status) };
  }

  /** The members of the problem. */
  get fields(): Record<string, unknown> {
    const outcome = UNKNOWN.has(this.code) ? { outcome: 'unknown' } : {};
    return { ...this.item, status: this.status, ...outcome, ...this.members };
  }
}

/** Return the problem of a request that needs the real service. */
export function unsupported(detail: string): MemoryProblem {
  return new MemoryProblem('not_in_memory', `The in-memory service has no ${detail}.`);
}

/** Return the problem of an invalid field. */
export function invalid(pointer: string, detail: string, code: string): MemoryProblem {
  return new MemoryProblem('validation_failed', detail, { errors: [{ pointer, detail, code }] });
}

/** Return the problem that a test asked for. */
export function injected(status: number): MemoryProblem {
  return new MemoryProblem(CODES[status] ?? `http_${status}`, `The test asked for status ${status}.`, {}, status);
}
