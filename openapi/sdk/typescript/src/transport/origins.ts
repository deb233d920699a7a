/** Pages and their origins, in a browser. */

/** The origin of the page; undefined outside browsers. */
export function pageOrigin(): string | undefined {
  const origin = (globalThis as { location?: { origin?: string } }).location?.origin;
  return origin?.startsWith('http') ? origin : undefined;
}

/** Whether this is a page of another origin, whose calls need CORS and whose WebSockets do not. */
export function isForeignPage(url: string): boolean {
  const origin = pageOrigin();
  return origin !== undefined && origin !== new URL(url).origin;
}

/** Return what to do about a service that never responded. */
export function firstContactHint(url: string): string {
  const cors = isForeignPage(url) ? ` Does its MILLSTREAM_CORS_ORIGINS list ${pageOrigin()}?` : '';
  return `Is the service running? Start one with \`millstream up\`.${cors}`;
}
