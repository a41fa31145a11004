import { createHash } from 'node:crypto';
import { type ApiClient, ApiFailure } from './api-client.js';
import { errorText } from './error-text.js';

/** Whether a bearer token may read a path. */
export interface ReadAnswer {
  readonly status: 200 | 401 | 403 | 503;
  /** The reason, for the answer's body; empty with 200. */
  readonly reason: string;
}

interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A path of the metrics port, and what is to be done with it. */
interface Asked {
  readonly path: string;
  readonly verb: Verb;
}

type Verb = 'get' | 'post';

/** A review's answer, with the time until which it is valid. */
interface Timed<Value> {
  readonly value: Value;
  readonly askedMs: number;
  readonly untilMs: number;
}

const AUTHENTICATED_MS = 60_000;
const ALLOWED_MS = 300_000;
const DENIED_MS = 30_000;
/** While the API server is away, an expired "allowed" counts for so long. */
const ALLOWED_STALE_MS = 600_000;
const ENTRIES_MAX = 1_000;
const REVIEW_MS_MAX = 5_000;

const REVIEWS = {
  tokenreviews: '/apis/authentication.k8s.io/v1/tokenreviews',
  subjectaccessreviews: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
  selfsubjectaccessreviews: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
};

/** Counts since the start. */
export interface ReviewCounts {
  readonly answers: Readonly<Record<'allowed' | 'stale' | 'unauthenticated' | 'denied' | 'unavailable', number>>;
  readonly requests: number;
  /** Remembered rights, expired ones included, and the milliseconds since the oldest of them was asked for. */
  readonly remembered: { readonly rights: number; readonly oldestMs: number };
}

/** Asks the API server who a token belongs to and what that user may read, and remembers the answers for a while. */
export class AccessReviews {
  readonly #client: ApiClient;
  readonly #now: () => number;
  readonly #users = new BoundedMap<Timed<User | undefined>>(ENTRIES_MAX);
  readonly #decisions = new BoundedMap<Timed<boolean>>(ENTRIES_MAX);
  /** Time at which a token was last allowed to read a path, by the API server's own word. */
  readonly #allowed = new BoundedMap<number>(ENTRIES_MAX);
  readonly #underWay = new Map<string, Promise<ReadAnswer>>();
  readonly #answers = { allowed: 0, stale: 0, unauthenticated: 0, denied: 0, unavailable: 0 };
  #requests = 0;

  /** @param now milliseconds of a clock that never steps back */
  constructor(client: ApiClient, now: () => number = () => performance.now()) {
    this.#client = client;
    this.#now = now;
  }

  get counts(): ReviewCounts {
    const now = this.#now();
    let oldestMs = 0;
    for (const { askedMs } of this.#decisions.values()) oldestMs = Math.max(oldestMs, now - askedMs);
    const remembered = { rights: this.#decisions.size, oldestMs };
    return { answers: { ...this.#answers }, requests: this.#requests, remembered };
  }

  /** Whether the owner of a bearer token may `get` or `post` to a path. Never rejects. */
  mayRead(token: string | undefined, path: string, verb: Verb = 'get'): Promise<ReadAnswer> {
    if (token === undefined || token === '') {
      this.#answers.unauthenticated++;
      return Promise.resolve({ status: 401, reason: 'a bearer token of the cluster is needed' });
    }
    const key = `${createHash('sha256').update(token).digest('base64')} ${verb} ${path}`;
    const running = this.#underWay.get(key);
    if (running !== undefined) return running;
    const answer = this.#review(token, key, { path, verb }).finally(() => this.#underWay.delete(key));
    // Beyond the bound a key asks on its own; the caches stay bounded either way.
    if (this.#underWay.size < ENTRIES_MAX) this.#underWay.set(key, answer);
    return answer;
  }

  /** Rights for reviews that the picker itself lacks; empty = it has all. Rejects with ApiFailure. */
  async missingRights(): Promise<string[]> {
    const missing: string[] = [];
    for (const [resource, group] of [
      ['tokenreviews', 'authentication.k8s.io'],
      ['subjectaccessreviews', 'authorization.k8s.io'],
    ] as const) {
      const resourceAttributes = { group, resource, verb: 'create' };
      const { status } = await this.#post<{ allowed?: boolean }>('selfsubjectaccessreviews', { resourceAttributes });
      if (status?.allowed !== true) missing.push(`create ${resource}.${group}`);
    }
    return missing;
  }

  async #review(token: string, key: string, asked: Asked): Promise<ReadAnswer> {
    try {
      const user = await this.#userOf(token, key.split(' ', 1)[0]!);
      if (user === undefined) {
        this.#answers.unauthenticated++;
        return { status: 401, reason: 'the API server does not accept the bearer token' };
      }
      if (await this.#isAllowed(user, asked)) {
        this.#allowed.set(key, this.#now());
        this.#answers.allowed++;
        return { status: 200, reason: '' };
      }
      this.#allowed.delete(key);
      this.#answers.denied++;
      return { status: 403, reason: `user ${user.username} may not ${asked.verb} ${asked.path}` };
    } catch (error) {
      return this.#withoutServer(key, error);
    }
  }

  #withoutServer(key: string, error: unknown): ReadAnswer {
    const away = !(error instanceof ApiFailure) || error.status === 0 || error.status >= 500 || error.status === 429;
    const allowedMs = this.#allowed.get(key);
    if (away && allowedMs !== undefined && this.#now() - allowedMs < ALLOWED_MS + ALLOWED_STALE_MS) {
      this.#answers.stale++;
      return { status: 200, reason: '' };
    }
    this.#answers.unavailable++;
    const reason = errorText(error);
    return { status: 503, reason: `the API server cannot be asked who may read: ${reason}` };
  }

  async #userOf(token: string, hash: string): Promise<User | undefined> {
    const known = this.#users.get(hash);
    if (known !== undefined && this.#now() < known.untilMs) return known.value;
    const { status } = await this.#post<{ authenticated?: boolean; user?: User }>('tokenreviews', { token });
    const user = status?.authenticated === true ? status.user : undefined;
    const forMs = user === undefined ? DENIED_MS : AUTHENTICATED_MS;
    const askedMs = this.#now();
    this.#users.set(hash, { value: user, askedMs, untilMs: askedMs + forMs });
    return user;
  }

  async #isAllowed(user: User, asked: Asked): Promise<boolean> {
    const key = JSON.stringify([user, asked]);
    const known = this.#decisions.get(key);
    if (known !== undefined && this.#now() < known.untilMs) return known.value;
    const { username, ...rest } = user;
    const spec = { user: username, ...rest, nonResourceAttributes: asked };
    const { status } = await this.#post<{ allowed?: boolean }>('subjectaccessreviews', spec);
    const allowed = status?.allowed === true;
    const askedMs = this.#now();
    this.#decisions.set(key, { value: allowed, askedMs, untilMs: askedMs + (allowed ? ALLOWED_MS : DENIED_MS) });
    return allowed;
  }

  async #post<Status>(review: keyof typeof REVIEWS, spec: object): Promise<{ status?: Status }> {
    this.#requests++;
    const options = { body: { spec }, timeoutMs: REVIEW_MS_MAX };
    return (await this.#client.request('POST', REVIEWS[review], options)) as { status?: Status };
  }
}

/** Forgets the entry that was written longest ago when it is full. */
class BoundedMap<Value> {
  readonly #entriesMax: number;
  readonly #entries = new Map<string, Value>();

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#entriesMax) this.#entries.delete(this.#entries.keys().next().value!);
    this.#entries.set(key, value);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  get size(): number {
    return this.#entries.size;
  }

  values(): Iterable<Value> {
    return this.#entries.values();
  }
}
