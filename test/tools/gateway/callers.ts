import { ask, chatBody, manyConnections } from './client.ts';

/** Beginnings of a few long conversations. */
const CONVERSATIONS = Array.from({ length: 12 }, (_, number) => `${number} is a conversation. `.repeat(200));

/** A request that was not answered with 200. Times are those of performance.now(). */
export interface Failure {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly said: string;
}

/** Callers that ask again as soon as they are answered, or at the pace of a beat. */
/** Milliseconds of `performance.now`. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

/** Time from the end of a process to the first refusal that the picker sees, on a machine that is short of time. */
const REFUSAL_MS = 100;

/** Kills a server. @returns the time until its first refusal has come: what is sent meanwhile counts as in flight */
export async function killed(kill: () => Promise<unknown>): Promise<Period> {
  const from = performance.now();
  await kill();
  return { from, to: performance.now() + REFUSAL_MS };
}

export class Callers {
  readonly failures: Failure[] = [];
  answered = 0;
  readonly #agent = manyConnections();
  readonly #port: number;
  readonly #loops: Promise<void>[];
  #sent = 0;
  #isOver = false;

  /** @param everyMs pause of each caller between the beginnings of its requests; 0 = none */
  constructor(port: number, count: number, everyMs = 0) {
    this.#port = port;
    this.#loops = Array.from({ length: count }, (_, caller) => this.#loop((caller * everyMs) / count, everyMs));
  }

  async #loop(firstMs: number, everyMs: number): Promise<void> {
    await pause(firstMs);
    while (!this.#isOver) {
      const asked = this.#ask();
      await (everyMs === 0 ? asked : Promise.all([asked, pause(everyMs)]));
    }
  }

  async #ask(): Promise<void> {
    const startedAt = performance.now();
    const prompt = CONVERSATIONS[this.#sent++ % CONVERSATIONS.length]!;
    const said = await ask(this.#port, { body: chatBody(prompt, { max_tokens: 4 }) }, this.#agent).then(
      ({ status, body }) => (status === 200 ? undefined : `${status} ${body}`),
      String,
    );
    if (said === undefined) this.answered++;
    else this.failures.push({ startedAt, endedAt: performance.now(), said });
  }

  /** Failures of requests that were in flight at some time from `from` to `to`. */
  inFlightDuring({ from, to }: Period): number {
    return this.failures.filter(({ startedAt, endedAt }) => startedAt <= to && from <= endedAt).length;
  }

  /** Resolves when the last request is answered. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
    this.#agent.destroy();
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
