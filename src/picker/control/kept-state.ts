import { z } from 'zod';
import type { Logger } from '../../operations/log.js';
import type { KeptName, KeptStore } from '../../replication/kept-store.js';
import { once } from '../../runtime/once.js';
import { ReportOnce } from '../../runtime/report-once.js';

/** Interval between two writes of the levels of buckets, and of the learned state. */
const TENANTS_MS = 1_000;
const LEARNED_MS = 30_000;
/** Bound on the wait of a start for what is kept. */
const START_MS_MAX = 2_500;
/** Bound on the tenants that are kept, those with the emptiest buckets. */
const TENANTS_MAX = 2_000;

const keptTenants = once(() =>
  z.strictObject({
    savedAtMs: z.number(),
    missing: z.array(z.tuple([z.string(), z.number().positive()])).max(TENANTS_MAX),
  }),
);

/** State of this replica that outlives all replicas of its group. */
export interface OutlivingState {
  /** Learned state; undefined = nothing has been learned. */
  readonly learned: () => Uint8Array | undefined;
  /** Takes over a kept learned state. @throws when it cannot be used */
  readonly restoreLearned: (learned: Uint8Array) => void;
  /** Tokens that are missing in the buckets of tenants, most first. */
  readonly missing: (tenantsMax: number) => readonly { readonly tenant: string; readonly tokens: number }[];
  /** Takes tokens that were missing `ageMs` ago out of the buckets. */
  readonly restore: (missing: readonly { readonly tenant: string; readonly tokens: number }[], ageMs: number) => void;
}

export interface KeptStateOptions {
  readonly store: KeptStore;
  readonly state: OutlivingState;
  /** Whether this replica writes, as one of the group does. */
  readonly writes: () => boolean;
  readonly log: Logger;
}

/**
 * Keeps what must survive all replicas of a group. Without a store everything else goes on; that is one line in the
 * log. Control thread only.
 */
export class KeptState {
  readonly #options: KeptStateOptions;
  readonly #problems = new ReportOnce((problem) =>
    this.#options.log.warn({}, `nothing is kept in JetStream, all else goes on: ${problem}`),
  );
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #written = new Map<KeptName, string>();

  constructor(options: KeptStateOptions) {
    this.#options = options;
  }

  /** Restores what an earlier group has kept, and begins to keep. Resolves within seconds, with a store or without. */
  async start(): Promise<void> {
    const { promise: patience, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, START_MS_MAX);
    await Promise.race([this.#restore(), patience]);
    clearTimeout(timer);
    this.#timers.push(setInterval(() => void this.#keep('tenants'), TENANTS_MS).unref());
    this.#timers.push(setInterval(() => void this.#keep('learned'), LEARNED_MS).unref());
  }

  /** Writes the last state. */
  async stop(): Promise<void> {
    if (this.#timers.length === 0) return;
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
    await Promise.all([this.#keep('tenants'), this.#keep('learned')]);
  }

  async #restore(): Promise<void> {
    const { store, state, log } = this.#options;
    try {
      const [learned, tenants] = await Promise.all([store.get('learned'), store.get('tenants')]);
      if (learned !== undefined) state.restoreLearned(learned);
      if (tenants === undefined) return;
      const { savedAtMs, missing } = keptTenants().parse(JSON.parse(Buffer.from(tenants).toString()));
      const all = missing.map(([tenant, tokens]) => ({ tenant, tokens }));
      state.restore(all, Math.max(0, Date.now() - savedAtMs));
      log.info({ tenants: all.length }, 'goes on with the buckets of tenants that an earlier group has kept');
    } catch (error) {
      this.#problems.problem(error);
    }
  }

  async #keep(name: KeptName): Promise<void> {
    const { store, writes } = this.#options;
    if (!writes()) return;
    const value = name === 'learned' ? this.#learned() : this.#tenants();
    if (value === undefined) return;
    try {
      await store.put(name, value.bytes);
      this.#written.set(name, value.mark);
      this.#problems.over();
    } catch (error) {
      this.#problems.problem(error);
    }
  }

  #learned(): Kept | undefined {
    const bytes = this.#options.state.learned();
    return bytes === undefined ? undefined : { bytes, mark: '' };
  }

  /** Levels, unless all buckets are full and were when they were written last. */
  #tenants(): Kept | undefined {
    const missing = this.#options.state.missing(TENANTS_MAX);
    const mark = missing.length === 0 ? 'full' : 'used';
    if (mark === 'full' && (this.#written.get('tenants') ?? 'full') === 'full') return undefined;
    const text = { savedAtMs: Date.now(), missing: missing.map(({ tenant, tokens }) => [tenant, tokens]) };
    return { bytes: Buffer.from(JSON.stringify(text)), mark };
  }
}

interface Kept {
  readonly bytes: Uint8Array;
  /** Tells values apart that need not be written twice. */
  readonly mark: string;
}
