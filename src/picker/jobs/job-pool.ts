import { Piscina } from 'piscina';
import { type EndpointsFile, readEndpointsFile } from '../../pool/discovery/endpoints-file.js';
import type { TokenisedTask, TokeniserThreads } from '../../request/tokens/local-source.js';

/** Time without work after which a job thread ends. */
const IDLE_MS = 5_000;
/** Bound on waiting tasks. More are refused, because their source is faster than the threads. */
const WAITING_MAX = 64;
/**
 * Bound on an endpoints file that is read without a job thread: it takes a few milliseconds, less than the start of a
 * thread.
 */
const INLINE_BYTES_MAX = 32 * 1024;

/** The job threads: a Piscina pool that exists only while there is work. */
export class JobPool {
  #workers: Piscina | undefined;

  /** Reads an endpoints file. A large one goes to a job thread: a megabyte of YAML takes about a second. */
  readEndpoints(text: string, path: string): EndpointsFile | Promise<EndpointsFile> {
    return text.length <= INLINE_BYTES_MAX ? readEndpointsFile(text, path) : this.#run('readEndpoints', { text, path });
  }

  #run<Result>(name: string, task: object): Promise<Result> {
    this.#workers ??= new Piscina({
      filename: new URL('./job.js', import.meta.url).href,
      minThreads: 0,
      maxThreads: 1,
      maxQueue: WAITING_MAX,
      idleTimeout: IDLE_MS,
      recordTiming: false,
    });
    return this.#workers.run(task, { name }) as Promise<Result>;
  }

  /** Live threads. */
  get threads(): number {
    return this.#workers?.threads.length ?? 0;
  }

  async stop(): Promise<void> {
    await this.#workers?.destroy();
  }
}

/**
 * Threads that turn prompts into tokens for one shard. They stay alive, because reading a model's files takes about a
 * second.
 */
export function startTokeniserThreads(count: number): TokeniserThreads {
  const workers = new Piscina({
    filename: new URL('./job.js', import.meta.url).href,
    minThreads: count,
    maxThreads: count,
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
  });
  return {
    run: (task) => workers.run(task, { name: 'tokenise' }) as Promise<TokenisedTask>,
    get waiting() {
      return workers.queueSize;
    },
    close: () => workers.destroy(),
  };
}
