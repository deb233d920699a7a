/**
 * Bodies and data: values, their form in JSON, and their form when they arrive.
 *
 *   value           stored as          content type
 *   Uint8Array      as it is           none, unless specified
 *   string          UTF-8              none, unless specified
 *   anything else   compact JSON       application/json
 */

const JSON_TYPE = 'application/json';
const CHUNK = 32_768; // arguments of one function call

/** Encode a value for `name` or `${name}_base64`. Throws TypeError for values without a JSON form. */
export function encodedBody<Name extends string>(name: Name, value: unknown): Record<string, unknown> {
  if (value instanceof Uint8Array) return { [`${name}_base64`]: base64Of(value) };
  if (value instanceof ArrayBuffer) return { [`${name}_base64`]: base64Of(new Uint8Array(value)) };
  if (typeof value === 'string' || JSON.stringify(value) !== undefined) return { [name]: value };
  throw new TypeError(`A ${typeof value} has no JSON form: send text, bytes or a JSON value.`);
}

function base64Of(bytes: Uint8Array): string {
  let binary = '';
  for (let start = 0; start < bytes.length; start += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK));
  }
  return btoa(binary);
}

/** Return the size of an encoded body in the JSON of a call, at most: text may need escapes. */
export function encodedSize(value: unknown): number {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return Math.ceil((value.byteLength * 4) / 3);
  return 3 * (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).length;
}

/** A body that arrived, in three forms. */
export class Body {
  readonly contentType: string;
  readonly #value: unknown;
  readonly #base64: string | undefined;

  constructor(value: unknown, base64: string | undefined, contentType: string | undefined) {
    this.#value = value;
    this.#base64 = base64;
    this.contentType = contentType ?? '';
  }

  /** The bytes in base64, of a body that is neither text nor JSON. */
  get base64(): string | undefined {
    return this.#base64;
  }

  /** The bytes of the body. */
  get bytes(): Uint8Array {
    if (this.#base64 === undefined) return new TextEncoder().encode(this.text);
    return Uint8Array.from(atob(this.#base64), (character) => character.charCodeAt(0));
  }

  /** The body as text; invalid UTF-8 becomes replacement characters. */
  get text(): string {
    if (this.#base64 !== undefined) return new TextDecoder().decode(this.bytes);
    return this.#isJson ? JSON.stringify(this.#value) : String(this.#value);
  }

  /** The body as a JSON value. Throws SyntaxError for invalid JSON. */
  json<T = unknown>(): T {
    return (this.#isJson ? this.#value : JSON.parse(this.text)) as T;
  }

  /** Size in bytes for credit; approximate for a JSON value that was sent with other white space or digits. */
  get size(): number {
    if (this.#base64 !== undefined) return Math.ceil((this.#base64.length * 3) / 4);
    return new TextEncoder().encode(this.text).length;
  }

  get #isJson(): boolean {
    return this.#base64 === undefined && (this.contentType === JSON_TYPE || typeof this.#value !== 'string');
  }
}
