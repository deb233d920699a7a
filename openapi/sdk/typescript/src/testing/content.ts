/** Content of stored messages and records, in the form of the API: a value, or bytes in base64. */

import { Body } from '../bodies.js';
import type { Fields } from './definitions.js';

const JSON_TYPE = 'application/json';

/** Return the content of a message (`body`) or record (`data`) that was sent. */
export function contentOf(name: 'body' | 'data', fields: Fields): Body {
  const value = fields[name];
  const given = (fields.content_type as string | undefined) ?? '';
  const base64 = fields[`${name}_base64`] as string | undefined;
  if (base64 !== undefined) return new Body(undefined, base64, given);
  if (typeof value !== 'string') return new Body(value, undefined, given || JSON_TYPE);
  return new Body(given === JSON_TYPE ? parsed(value) : value, undefined, given);
}

/** Return stored content as the API does. */
export function shownContent(name: 'body' | 'data', content: Body): Fields {
  const { base64 } = content;
  const value = () => (content.contentType === JSON_TYPE ? content.json() : content.text);
  const shown = base64 === undefined ? { [name]: value() } : { [`${name}_base64`]: base64 };
  return { ...shown, ...given('content_type', content.contentType) };
}

/** Return a field, unless it is empty. */
export function given(name: string, value: unknown): Fields {
  const isEmpty = value === undefined || value === null || value === '' || isEmptyObject(value);
  return isEmpty ? {} : { [name]: value };
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
