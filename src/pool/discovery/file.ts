import type { Endpoint, LoadedDiscovery, PoolState } from '../../contract/endpoint.js';
import { counted } from '../../runtime/counted.js';
import { ReportOnce } from '../../runtime/report-once.js';
import { BrokenFile, type EndpointsFile, type FileEndpoint, readEndpointsFile } from './endpoints-file.js';
import { FileWatch, type FileWatchOptions, readBoundedFile } from './file-watch.js';
import { HostNames, type HostNamesOptions } from './host-names.js';

export interface FileDiscoveryOptions extends HostNamesOptions, FileWatchOptions {
  readonly path: string;
  /** Whether the file is read again after a change. */
  readonly watch: boolean;
  /** Reads the text, perhaps on another thread. Default: here, at once. */
  readonly read?: (text: string, path: string) => EndpointsFile | Promise<EndpointsFile>;
}

/** Bound on the problems of one load that are reported one by one; the rest is a number. */
const PROBLEMS_MAX = 20;

/** Endpoints, objectives and rewrites from a file (docs/discovery.md). */
export function createFileDiscovery(options: FileDiscoveryOptions): LoadedDiscovery {
  return new FileDiscovery(options);
}

class FileDiscovery implements LoadedDiscovery {
  readonly #options: FileDiscoveryOptions;
  #changed: (state: PoolState) => void = () => {};
  #report: (problem: string) => void = () => {};
  #hosts: HostNames | undefined;
  #watch: FileWatch | undefined;
  #text: string | undefined;
  #file: EndpointsFile | undefined;
  /** The state that was given out, to be compared. */
  #given = '';
  readonly #loadProblems = new ReportOnce((problem) => this.#report(`${problem}; the endpoints stay as they were`));
  #stopped = false;

  constructor(options: FileDiscoveryOptions) {
    this.#options = options;
  }

  async start(changed: (state: PoolState) => void, report: (problem: string) => void): Promise<PoolState> {
    this.#changed = changed;
    this.#report = report;
    const { path } = this.#options;
    this.#text = await readBoundedFile(path);
    const file = await this.#read(this.#text, path);
    const [first] = file.problems;
    if (first !== undefined) {
      const more = file.problems.length - 1;
      throw new BrokenFile(more === 0 ? first : `${first} (and ${more} more)`);
    }
    this.#file = file;
    const hosts = new HostNames(
      this.#options,
      () => this.#tell(),
      (hostName, problem) => this.#reportHost(hostName, problem),
    );
    this.#hosts = hosts;
    await hosts.watch(hostNames(file));
    const state = this.#state(file);
    this.#given = fingerprint(state);
    if (this.#options.watch && !this.#stopped) this.#watch = new FileWatch(path, this.#options, () => this.#load());
    return state;
  }

  #read(text: string, path: string): EndpointsFile | Promise<EndpointsFile> {
    return (this.#options.read ?? readEndpointsFile)(text, path);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#hosts?.stop();
    await this.#watch?.stop();
  }

  /** Reads the file again. Never rejects: what is wrong with it is reported. */
  async #load(): Promise<void> {
    const { path } = this.#options;
    try {
      const text = await readBoundedFile(path);
      this.#loadProblems.over();
      if (text === this.#text || this.#stopped) return;
      this.#text = text;
      const file = await this.#read(text, path);
      if (this.#stopped) return;
      this.#reportAll(file.problems);
      this.#file = file;
      await this.#hosts?.watch(hostNames(file));
      this.#tell();
    } catch (error) {
      this.#loadProblems.problem(error);
    }
  }

  #reportHost(hostName: string, problem: string): void {
    const [first, ...others] = (this.#file?.endpoints ?? []).filter(
      ({ host }) => 'hostName' in host && host.hostName === hostName,
    );
    const more = others.length === 0 ? '' : ` (and ${counted(others.length, 'more entry', 'more entries')})`;
    if (first !== undefined) this.#report(`${first.origin}: address: "${hostName}"${more} ${problem}`);
  }

  #reportAll(problems: readonly string[]): void {
    for (const problem of problems.slice(0, PROBLEMS_MAX)) this.#report(`${problem}; the entry is left out`);
    const more = problems.length - PROBLEMS_MAX;
    if (more > 0) this.#report(`${this.#options.path}: also left out: ${counted(more, 'more entry', 'more entries')}`);
  }

  #tell(): void {
    if (this.#file === undefined || this.#stopped) return;
    const state = this.#state(this.#file);
    const next = fingerprint(state);
    if (next === this.#given) return;
    this.#given = next;
    this.#changed(state);
  }

  #state(file: EndpointsFile): PoolState {
    const endpoints: Endpoint[] = [];
    for (const { id, name, namespace, host, port, labels } of file.endpoints) {
      const address = 'ip' in host ? host.ip : this.#hosts?.address(host.hostName);
      if (address === undefined) continue;
      const hostName = 'hostName' in host ? { hostName: host.hostName } : {};
      endpoints.push({ id, name, namespace, address, port, ...hostName, labels });
    }
    return { endpoints, objectives: file.objectives, rewrites: file.rewrites };
  }
}

function hostNames({ endpoints }: EndpointsFile): Set<string> {
  return new Set(endpoints.flatMap(({ host }: FileEndpoint) => ('hostName' in host ? [host.hostName] : [])));
}

function fingerprint({ endpoints, objectives, rewrites }: PoolState): string {
  return JSON.stringify([endpoints, [...objectives], rewrites]);
}
