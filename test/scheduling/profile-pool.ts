import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import type { LoadedConfiguration } from '../../dist/src/config/load.js';
import { endpointColumns, hookColumn } from '../../dist/src/core/hook-columns.js';
import { attachCore, type CoreInstance, createPoolMemory, Decider, EndpointTable } from '../../dist/src/core/index.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { PromptKind } from '../../dist/src/core/types.js';
import { ProgramPublisher } from '../../dist/src/picker/control/program-publisher.js';
import type { GatedScheduler, Placement, Rejection, ScheduleInput } from '../../dist/src/scheduling/decision.js';
import { EndpointDirectory } from '../../dist/src/scheduling/endpoint-directory.js';
import { HookPlugins, HookScheduler } from '../../dist/src/scheduling/hooks/hook-plugins.js';
import { PoolViews } from '../../dist/src/scheduling/hooks/pool-views.js';
import type { PluginDefinition } from '../../dist/src/scheduling/plugin.js';
import type { ProfileHandler } from '../../dist/src/scheduling/profile-handler.js';
import { makeProfileHandler } from '../../dist/src/scheduling/profile-handlers/make-profile-handler.js';
import type { ProfileFilter } from '../../dist/src/scheduling/program.js';
import { CoreScheduler } from '../../dist/src/scheduling/scheduler.js';
import { smallSizes } from '../core/pool.ts';
import { DECIDE } from '../serve/default-sections.ts';
import { endpointOf } from './hook-pool.ts';

/** Labels of an endpoint with a role. */
export const role = (name: string, more: Readonly<Record<string, string>> = {}) => ({ 'llm-d.ai/role': name, ...more });

export interface ProfileAsked {
  readonly prompt?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly subset?: readonly string[];
  readonly hasMedia?: boolean;
}

/**
 * The scheduling of one shard as a configuration makes it, over a real core: endpoints 10.0.0.1 … in slots 0 …, named
 * pod-0 …, all idle.
 */
export class ProfilePool {
  readonly control: CoreInstance;
  readonly core: CoreInstance;
  readonly table: EndpointTable;
  readonly scheduler: GatedScheduler;
  /** Stages of the requests so far, with their models. */
  readonly staged: string[] = [];
  readonly #scanner: RequestScanner;
  readonly #plugins: HookPlugins;
  readonly #blockTokens: number;

  constructor(
    { scheduling }: LoadedConfiguration,
    labels: readonly Readonly<Record<string, string>>[],
    more: readonly PluginDefinition[] = [],
    wrap: (handler: ProfileHandler) => ProfileHandler = (handler) => handler,
    filters = scheduling.profiles.map(() => [] as readonly ProfileFilter[]),
  ) {
    const memory = createPoolMemory(smallSizes, { hashSeed: 7n });
    this.control = attachCore(memory, 0);
    this.core = attachCore(memory, 1);
    this.table = new EndpointTable(this.control);
    const programs = new ProgramPublisher(this.control);
    programs.publish(programs.place(scheduling));
    const assignments = labels.map((each, slot) => ({ slot, generation: 1, endpoint: endpointOf(slot, each) }));
    for (const { slot, endpoint } of assignments) {
      this.table.open(slot, 1);
      this.table.setState(slot, 'live');
      this.table.publish(
        slot,
        { waiting: 0, running: 0, kvUsage: 0, adapters: { running: [], waiting: [], max: 4 } },
        1,
      );
      for (const [column, { read }] of scheduling.labels.entries()) {
        const value = read(endpoint);
        if (value.kind === 'text') this.table.setLabelText(column, slot, value.text);
        else this.table.setLabelRange(column, slot, value.range);
      }
    }
    for (const [mask, { accepts }] of scheduling.masks.entries()) {
      this.table.setMask(
        mask,
        [...labels.keys()].filter((slot) => accepts(labels[slot]!)),
      );
    }
    const directory = new EndpointDirectory();
    directory.apply(assignments, []);
    const definitions = new Map([...builtinPlugins, ...more].map((definition) => [definition.type, definition]));
    this.#plugins = new HookPlugins(scheduling.host, definitions, {
      views: new PoolViews(directory, endpointColumns(this.core)),
      column: (index) => hookColumn(this.core, index),
      clock: () => 0,
      now: () => 0,
      random: () => 0.5,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      failed: (plugin) => {
        throw new Error(`plugin ${plugin} failed`);
      },
      count: () => {},
      observe: () => {},
      prompts: { blockTokens: 64, chainHashes: () => new BigUint64Array() },
      share: () => () => {},
    });
    this.#scanner = new RequestScanner(this.core);
    this.#blockTokens = scheduling.prefix?.blockTokens ?? 64;
    const inner = new CoreScheduler({
      decider: new Decider(this.core, 42n),
      directory,
      settings: {
        current: {
          profiles: scheduling.profiles.map(({ name }) => name),
          filters,
          prefix: scheduling.prefix,
          estimateOutput: scheduling.estimateOutput,
        },
      },
      handler: wrap(makeProfileHandler(scheduling.handler, definitions)),
      hookColumns: (input, profile) => this.#plugins.fill(input, profile),
      prompts: this.#scanner,
      requestKeys: scheduling.requestKeys,
      blockTokens: this.#blockTokens,
      decide: { ...DECIDE, emitScores: true },
      nowMs: () => 1,
      later: () => {},
      ejected: () => {},
      staged: (stages, model) => this.staged.push(`${stages} ${model}`),
    });
    this.scheduler = new HookScheduler(inner, this.#plugins);
  }

  /** Decides a completions request; its charges are held until they are released. */
  schedule({ prompt = 'hello', headers = {}, subset, hasMedia }: ProfileAsked = {}): Placement | Rejection {
    const scan = this.#scanner.open(PromptKind.completions, this.#blockTokens * 4);
    this.#scanner.feed(scan, Buffer.from(JSON.stringify({ model: 'm', prompt })));
    this.#scanner.finish(scan);
    const read = { get: (name: string) => headers[name] };
    const hookRequest = this.#plugins.begin(read, '/v1/completions', 0, undefined);
    const input: ScheduleInput = {
      scan,
      model: 'm',
      targetModel: 'm',
      cacheSalt: undefined,
      promptBytes: prompt.length,
      hasMedia,
      maxOutputTokens: undefined,
      priority: 0,
      fairnessId: 'default-flow',
      subset,
      headers: read,
      path: '/v1/completions',
      hookRequest,
    };
    try {
      const outcome = this.scheduler.schedule(input);
      if (outcome.kind === 'waiting') throw new Error('waiting without a gate');
      return outcome;
    } finally {
      this.#scanner.close(scan);
    }
  }

  /** Decides a request that is expected to be placed. */
  place(asked: ProfileAsked = {}): Placement {
    const outcome = this.schedule(asked);
    if (outcome.kind === 'rejected') throw new Error(`${outcome.code}: ${outcome.message}`);
    return outcome;
  }

  /** Decide and release: names of the first pick of each profile, and the headers that were set. */
  picks(asked: ProfileAsked = {}): Readonly<Record<string, string>> {
    const { picks, charge } = this.place(asked);
    charge.release();
    return Object.fromEntries([...picks].map(([profile, [first]]) => [profile, first!.endpoint.name]));
  }

  /** Requests in flight and uncached prompt tokens of every slot. */
  load(slots: number): readonly (readonly [requests: number, tokens: number])[] {
    return Array.from({ length: slots }, (_, slot) => {
      const { inflight, inflightTokens } = this.table.read(slot);
      return [inflight, inflightTokens] as const;
    });
  }
}
