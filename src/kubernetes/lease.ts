import { type ApiClient, ApiFailure } from './api-client.js';
import { errorText } from './error-text.js';
import { kindPath, LEASE } from './kinds.js';

export interface LeaderElectionOptions {
  readonly client: ApiClient;
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  /** Identity of this process among all candidates. */
  readonly identity: string;
  /** Called when leadership was won or lost. */
  readonly changed: (leader: boolean) => void;
  readonly report: (problem: string) => void;
  /** Milliseconds of a clock that never steps back. */
  readonly now?: () => number;
  /** From [0, 1). */
  readonly random?: () => number;
}

/** Times of client-go's defaults, which llm-d-router uses: replicas of both can stand side by side. */
const LEASE_SECONDS = 15;
const RETRY_MS = 2_000;
const JITTER = 0.2;
const REQUEST_MS_MAX = 5_000;
const RELEASE_MS_MAX = 2_000;

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

interface LeaseObject {
  readonly metadata: { readonly resourceVersion?: string };
  readonly spec?: LeaseSpec;
}

/** Action of a candidate on the record that it sees. */
export type LeaseStep = 'wait' | 'acquire' | 'renew';

/**
 * Judges a record of the lease by the time since it was seen to change, never by the times in it: clocks differ.
 * @param unchangedMs time since the record was seen to change
 */
export function leaseStep(spec: LeaseSpec, identity: string, unchangedMs: number): LeaseStep {
  const { holderIdentity = '', leaseDurationSeconds = LEASE_SECONDS } = spec;
  if (holderIdentity === identity) return 'renew';
  if (holderIdentity === '') return 'acquire';
  return unchangedMs < leaseDurationSeconds * 1000 ? 'wait' : 'acquire';
}

/**
 * Takes part in the election of a leader through a Lease. A leader that cannot renew because the server does not answer
 * stays leader, since no replica can take the lease then; it steps down at the sight of another holder.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #now: () => number;
  readonly #random: () => number;
  #leader = false;
  #seen = '';
  #seenMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #stopped = false;
  #complaint = '';
  #refusals = 0;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
  }

  get leader(): boolean {
    return this.#leader;
  }

  start(): void {
    this.#round = this.#try().finally(() => {
      if (this.#stopped) return;
      this.#timer = setTimeout(() => this.start(), RETRY_MS * (1 + JITTER * this.#random())).unref();
    });
  }

  /** Releases a held lease, so that another candidate takes it at its next try. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#round;
    if (!this.#leader) return;
    this.#become(false);
    try {
      const lease = await this.#read(RELEASE_MS_MAX);
      if (lease?.spec?.holderIdentity !== this.#options.identity) return;
      const now = microTime();
      await this.#write(lease, {
        ...lease.spec,
        holderIdentity: '',
        leaseDurationSeconds: 1,
        acquireTime: now,
        renewTime: now,
      });
    } catch (error) {
      this.#report(`the lease could not be released: ${errorText(error)}`);
    }
  }

  async #try(): Promise<void> {
    try {
      const lease = await this.#read(REQUEST_MS_MAX);
      if (this.#stopped) return;
      if (lease === undefined) await this.#create();
      else await this.#judge(lease);
      this.#complaint = '';
      this.#refusals = 0;
    } catch (error) {
      // 409: another candidate was faster, or the record has changed; the next try sees the new record.
      if (error instanceof ApiFailure && error.status === 409) return;
      // A freshly started server refuses everything until it has read its roles.
      if (error instanceof ApiFailure && error.status === 403 && ++this.#refusals < 2) return;
      this.#report(problemOf(error, this.#options));
    }
  }

  async #judge(lease: LeaseObject): Promise<void> {
    const { identity } = this.#options;
    const spec = lease.spec ?? {};
    const record = `${lease.metadata.resourceVersion}`;
    if (record !== this.#seen) {
      this.#seen = record;
      this.#seenMs = this.#now();
    }
    const step = leaseStep(spec, identity, this.#now() - this.#seenMs);
    if (step === 'wait') return this.#become(false);
    const now = microTime();
    const acquired =
      step === 'renew'
        ? { acquireTime: spec.acquireTime ?? now, leaseTransitions: spec.leaseTransitions ?? 0 }
        : { acquireTime: now, leaseTransitions: (spec.leaseTransitions ?? 0) + 1 };
    await this.#write(lease, { ...this.#held(now), ...acquired });
    this.#become(true);
  }

  #held(now: string): LeaseSpec {
    return { holderIdentity: this.#options.identity, leaseDurationSeconds: LEASE_SECONDS, renewTime: now };
  }

  async #read(timeoutMs: number): Promise<LeaseObject | undefined> {
    try {
      return (await this.#options.client.request('GET', this.#path(), { timeoutMs })) as LeaseObject;
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 404) return undefined;
      throw error;
    }
  }

  async #create(): Promise<void> {
    const { client, namespace, name } = this.#options;
    const now = microTime();
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace },
      spec: { ...this.#held(now), acquireTime: now, leaseTransitions: 0 },
    };
    await client.request('POST', kindPath(LEASE, namespace), { body, timeoutMs: REQUEST_MS_MAX });
    this.#become(true);
  }

  async #write(lease: LeaseObject, spec: LeaseSpec): Promise<void> {
    const body = { ...lease, spec };
    await this.#options.client.request('PUT', this.#path(), { body, timeoutMs: REQUEST_MS_MAX });
  }

  #path(): string {
    return `${kindPath(LEASE, this.#options.namespace)}/${encodeURIComponent(this.#options.name)}`;
  }

  #become(leader: boolean): void {
    if (leader === this.#leader || (leader && this.#stopped)) return;
    this.#leader = leader;
    this.#options.changed(leader);
  }

  #report(problem: string): void {
    if (problem !== this.#complaint) this.#options.report(problem);
    this.#complaint = problem;
  }
}

function problemOf(error: unknown, { namespace, name }: LeaderElectionOptions): string {
  if (error instanceof ApiFailure && error.status === 403) {
    return (
      `leases.coordination.k8s.io: get, create, update in namespace ${namespace}: forbidden; ` +
      `add the rule to the Role of the service account (deploy/rbac). The server says: ${error.message}`
    );
  }
  return `the lease ${namespace}/${name} cannot be read or renewed: ${errorText(error)}`;
}

/** Wall time with microseconds, as the API's MicroTime has it. */
function microTime(): string {
  return new Date().toISOString().replace('Z', '000Z');
}
