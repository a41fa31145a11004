import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { dialPicker, type ProxyClient } from '../../ingress/proxy-client.ts';
import { type Ports, PROGRAM, Setting } from '../../picker/serving.ts';
import { PREFIX_PROFILE } from '../prefix-profile.ts';
import { TcpProxy } from '../tcp-proxy.ts';
import type { Observation, ReplicaPage } from './checker.ts';

const ENDPOINTS = Array.from({ length: 4 }, (_, i) => ({ name: `s${i}`, port: 20_200 + i }));
/** Answers of a process that goes on after a stop which say nothing: its timers have not run yet. */
const ANSWERS_AFTER_STOP = 2;

/** A picker of its own process behind a proxy of its own to NATS, which can be killed, stopped and started again. */
export class ReplicaProcess {
  readonly name: string;
  readonly proxy: TcpProxy;
  /** Starts so far. */
  generation = 0;
  state: 'up' | 'down' | 'stopped' = 'down';
  readonly #setting: Setting;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #ports: Ports | undefined;
  #client: ProxyClient | undefined;
  #unsaid = 0;
  #log = '';

  private constructor(name: string, proxy: TcpProxy, setting: Setting, isPod: boolean) {
    this.name = name;
    this.proxy = proxy;
    this.#setting = setting;
    // A pod is the same replica after a restart; another process gets a name of its own each time.
    this.#environment = isPod ? { POD_NAME: name } : {};
  }

  /** @param more lines for the end of its configuration */
  static async create(
    name: string,
    natsPort: number,
    group: string,
    isPod: boolean,
    more = '',
  ): Promise<ReplicaProcess> {
    const proxy = await TcpProxy.start(natsPort);
    const replication = `replication: {nats: "${proxy.url}", group: ${group}}\n`;
    return new ReplicaProcess(name, proxy, await Setting.create(ENDPOINTS, PREFIX_PROFILE + replication + more), isPod);
  }

  /** Client of the running process. */
  get client(): ProxyClient {
    return this.#client!;
  }

  get metricsPort(): number {
    return this.#ports!.metricsPort;
  }

  /** Last lines of its log. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when the picker serves, however long that takes. */
  async start(): Promise<void> {
    const flags = ['--lame-duck=0s', '--drain-timeout=0s', '--refresh-metrics-interval=1m'];
    const child = spawn(process.execPath, [PROGRAM, 'serve', ...this.#setting.flags, ...flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...this.#environment },
    });
    this.#child = child;
    this.#ended = once(child, 'close');
    this.#ports = await this.#serving(child);
    this.#client = dialPicker(this.#ports.grpcPort);
    this.generation++;
    this.state = 'up';
  }

  #serving(child: ChildProcess): Promise<Ports> {
    return new Promise((resolve, reject) => {
      let text = '';
      child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        this.#log = (this.#log + piece).slice(-20_000);
        const line = text.split('\n').find((each) => each.includes('pointsman is serving') && each.endsWith('}'));
        if (line !== undefined) resolve(JSON.parse(line) as Ports);
        text = text.slice(text.lastIndexOf('\n') + 1);
      });
      child.once('close', () => reject(new Error(`${this.name} has ended: ${this.#log.slice(-2_000)}`)));
    });
  }

  /** Ends the process; resolves when it is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.state = 'down';
    this.#child?.kill(signal);
    await this.#ended;
    this.#client?.close();
  }

  /** Stops the process without ending it. */
  stop(): void {
    this.state = 'stopped';
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#unsaid = ANSWERS_AFTER_STOP;
    this.state = 'up';
  }

  /** Asks for its view; undefined = it ended meanwhile, or its answer says nothing yet. */
  async observe(askedMs: number): Promise<Observation | undefined> {
    const { generation } = this;
    try {
      const page = await this.#page();
      if (this.state !== 'up' || generation !== this.generation || this.#unsaid-- > 0) return undefined;
      this.#unsaid = 0;
      return { picker: this.name, askedMs, page };
    } catch (error) {
      if (this.state === 'up' && generation === this.generation) throw error;
      return undefined;
    }
  }

  #page(): Promise<ReplicaPage> {
    const url = `http://127.0.0.1:${this.#ports!.metricsPort}/debug/replicas`;
    return new Promise((resolve, reject) => {
      const request = get(url, { agent: this.#agent }, async (answer) => {
        try {
          let text = '';
          for await (const piece of answer.setEncoding('utf8')) text += piece;
          resolve(JSON.parse(text) as ReplicaPage);
        } catch (error) {
          reject(error as Error);
        }
      });
      // The picker closes a connection that was idle for seconds, which happens while the machine is busy.
      request.on('error', (error) => {
        if (request.reusedSocket) this.#page().then(resolve, reject);
        else reject(error);
      });
    });
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    this.#agent.destroy();
    await this.proxy.close();
    await this.#setting.remove();
  }
}
