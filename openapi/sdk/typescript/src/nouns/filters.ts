/** Filters of messages that are browsed. */

import type { BrowseMessagesData } from '../generated/types.gen.js';

/** Conditions on messages, which must all hold. */
export interface MessageFilter {
  groups?: string[];
  headers?: Record<string, string>;
  /** Required values by JSON Pointer: `{'/customer/id': 7}`; `undefined` is any value. */
  body?: Record<string, unknown>;
  /** Text in the body or a header, or the id or the group. */
  text?: string;
  sentFrom?: Date;
  sentBefore?: Date;
}

/** Return the parameters of the conditions. */
export function queryOf(conditions: MessageFilter): BrowseMessagesData['query'] {
  const { groups, headers, body, text, sentFrom, sentBefore } = conditions;
  return {
    group: groups,
    header: headers && Object.entries(headers).map(([name, value]) => `${name}:${value}`),
    body: body && Object.entries(body).map(([path, value]) => term(path, value)),
    text,
    from: sentFrom?.toISOString(),
    to: sentBefore?.toISOString(),
  };
}

function term(path: string, value: unknown): string {
  return value === undefined ? path : `${path}=${JSON.stringify(value)}`;
}
