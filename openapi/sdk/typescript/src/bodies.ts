/** Bodies and data, as JSON tells them: text, a JSON value, or base64. */

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

  /** Its bytes. */
  get bytes(): Uint8Array {
    if (this.#base64 === undefined) return new TextEncoder().encode(this.text);
    return Uint8Array.from(atob(this.#base64), (character) => character.charCodeAt(0));
  }

  /** It as text; bytes that are none become replacement characters. */
  get text(): string {
    if (this.#base64 !== undefined) return new TextDecoder().decode(this.bytes);
    return this.#isJson ? JSON.stringify(this.#value) : String(this.#value);
  }

  /** It as a JSON value. Throws SyntaxError when it is none. */
  json<T = unknown>(): T {
    return (this.#isJson ? this.#value : JSON.parse(this.text)) as T;
  }

  /** How many bytes its credit counts; of a JSON value that was sent with other white space or digits, nearly. */
  get size(): number {
    if (this.#base64 !== undefined) return Math.ceil((this.#base64.length * 3) / 4);
    return new TextEncoder().encode(this.text).length;
  }

  get #isJson(): boolean {
    return this.#base64 === undefined && (this.contentType === JSON_TYPE || typeof this.#value !== 'string');
  }
}
