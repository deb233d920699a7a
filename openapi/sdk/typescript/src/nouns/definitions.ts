/** Creation that never overwrites, shared by queues, streams, groups and sources. */

import { AlreadyExists, OutcomeUnknown } from '../errors.js';

/** Headers of a PUT that only creates. */
export const CREATE = { 'if-none-match': '*' } as const;

export interface CreateOptions {
  /** Throw AlreadyExists also if the object exists with the same settings. */
  onlyNew?: boolean;
}

export interface ApplyOptions {
  /** Store nothing, and return what would change. */
  dryRun?: boolean;
}

/**
 * Return what a PUT that only creates has stored, or an existing object if its settings are the same: an attempt without
 * a response may have created it.
 */
export async function created<Stored>(
  call: Promise<{ data: Stored }>,
  { onlyNew = false }: CreateOptions,
  more: Partial<Stored> = {},
): Promise<Stored> {
  try {
    return (await call).data;
  } catch (error) {
    const existing = error instanceof OutcomeUnknown ? error.cause : error;
    if (!(existing instanceof AlreadyExists) || existing.changes.length > 0 || onlyNew) throw error;
    return { ...(existing.current as Stored), created: false, dry_run: false, changes: [], ...more };
  }
}
