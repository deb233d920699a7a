/** Bodies and data in JSON: text, a JSON value, or base64. */

const JSON_TYPE = 'application/json';

export class Body {
  readonly contentType: string;
  readonly #value: unknown;
  readonly #base64: string | undefined;

  constructor(value: unknown, base64: string | undefined, contentType: string | undefined) {
    this.#value = value;
    this.#base64 = base64;
    this.contentType = contentType ?? '';
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
