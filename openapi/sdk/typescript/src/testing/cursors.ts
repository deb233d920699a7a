/** Opaque cursors and tokens: JSON in hexadecimal digits. */

import { MemoryProblem } from './problems.js';

/** Return an opaque text of fields. */
export function encodeCursor(...fields: unknown[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(fields));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Return the fields of a cursor. Throws MemoryProblem. */
export function decodeCursor<Fields extends unknown[]>(cursor: string): Fields {
  try {
    const bytes = Uint8Array.from(cursor.match(/../g) ?? [], (digits) => parseInt(digits, 16));
    return JSON.parse(new TextDecoder().decode(bytes)) as Fields;
  } catch {
    throw new MemoryProblem('invalid_cursor', 'The cursor was not issued by this service.');
  }
}
