import { createHmac } from 'node:crypto';

/** Format in which a token names an endpoint. */
export interface TokenFormat {
  /** Token of the endpoint `namespace/name`. */
  encode(id: string): string;
  /** Endpoint of a token; undefined for other texts. `ids` are the existing endpoints. */
  decode(token: string, ids: () => Iterable<string>): string | undefined;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Bound on a token in characters. Endpoint ids have at most 253 + 1 + 253 (Kubernetes names). */
const TOKEN_CHARACTERS_MAX = 1024;

/** llm-d-router's token: base64 of `namespace/name`. It shows clients the names of the endpoints, and can be forged. */
export const readableTokens: TokenFormat = {
  encode: (id) => Buffer.from(id).toString('base64'),
  decode: (token) =>
    token === '' || token.length > TOKEN_CHARACTERS_MAX || !BASE64.test(token)
      ? undefined
      : Buffer.from(token, 'base64').toString(),
};

/** Bound on the remembered tokens, far above the endpoints of a pool. */
const REMEMBERED_MAX = 16_384;
/** Bytes of the code, 128 bits, URL-safe: too many to guess one. */
const TOKEN_BYTES = 16;

/**
 * A token without readable content that cannot be made without the key: an HMAC-SHA-256 of the endpoint's id. It is
 * decoded by computing the tokens of all endpoints, each once.
 */
export class SignedTokens implements TokenFormat {
  readonly #key: Buffer;
  readonly #tokens = new Map<string, string>();
  readonly #ids = new Map<string, string>();

  /** @param key at least 16 bytes; the same on every replica */
  constructor(key: Buffer) {
    if (key.length < 16) throw new RangeError('the key of session tokens needs at least 16 bytes');
    this.#key = key;
  }

  encode(id: string): string {
    const known = this.#tokens.get(id);
    if (known !== undefined) return known;
    if (this.#tokens.size >= REMEMBERED_MAX) {
      this.#tokens.clear();
      this.#ids.clear();
    }
    const token = createHmac('sha256', this.#key).update(id).digest().subarray(0, TOKEN_BYTES).toString('base64url');
    this.#tokens.set(id, token);
    this.#ids.set(token, id);
    return token;
  }

  decode(token: string, ids: () => Iterable<string>): string | undefined {
    const known = this.#ids.get(token);
    if (known !== undefined) return known;
    for (const id of ids()) this.encode(id);
    return this.#ids.get(token);
  }
}
