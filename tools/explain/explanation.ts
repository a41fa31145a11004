import { CostModel } from '../../src/adaptation/cost-model.js';
import { saturation } from '../../src/admission/shedding.js';
import type { LoadedConfiguration } from '../../src/config/load.js';
import { type Endpoint, endpointAddress, type PoolState } from '../../src/contract/endpoint.js';
import { CostTable } from '../../src/core/coefficients.js';
import { Decider } from '../../src/core/decider.js';
import type { DecisionRequest } from '../../src/core/decision-data.js';
import { EndpointTable } from '../../src/core/endpoint-table.js';
import { attachCore, type CoreInstance, createPoolMemory, defaultPoolSizes } from '../../src/core/memory.js';
import type { Operation } from '../../src/core/operations.js';
import { PrefixIndex } from '../../src/core/prefix-index.js';
import { ProgramTable } from '../../src/core/programs.js';
import { RequestScanner } from '../../src/core/request-scanner.js';
import { namedFairnessId, requestPath } from '../../src/request/control-headers.js';
import { createDialects, type Dialect, type ParserName } from '../../src/request/dialects.js';
import { STATUS_OF_CODE } from '../../src/request/rejections.js';
import { RequestBody } from '../../src/request/request-body.js';
import { RequestRules } from '../../src/request/rules.js';
import {
  requesterOf,
  type UnderstoodRequest,
  understand,
  understandHeaders,
  understandOpaque,
} from '../../src/request/understand.js';
import { seededRandom } from '../../src/runtime/seeded-random.js';
import type { Rejection, ScheduleInput } from '../../src/scheduling/decision.js';
import { EndpointDirectory } from '../../src/scheduling/endpoint-directory.js';
import { steadyFilter } from '../../src/scheduling/no-pick.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import type { HandledRequest, PickWork } from '../../src/scheduling/profile-handler.js';
import { makeProfileHandler } from '../../src/scheduling/profile-handlers/make-profile-handler.js';
import type { CompiledProfile } from '../../src/scheduling/program.js';
import { PLAIN_BLOCK_TOKENS, TOKEN_BYTES } from '../../src/scheduling/prompt-sizes.js';
import type { RequestHeaders } from '../../src/scheduling/request-headers.js';
import { wantedTimes } from '../../src/scheduling/wanted-times.js';
import { operationKind } from '../command-line/program-text.js';
import { ExplainedPlugins } from './explained-plugins.js';
import type { ExplainedEndpoint, ExplainedOutcome, ExplainedSignals, Explanation } from './explained-request.js';
import { type ExplainedRun, ExplainedRuns } from './explained-runs.js';
import { openOfflineEndpoints } from './offline-endpoints.js';
import type { EndpointState } from './signals-file.js';

export interface ExplainInput {
  readonly configuration: LoadedConfiguration;
  /** Definitions of the plugins that the configuration was loaded with. */
  readonly registry: readonly PluginDefinition[];
  readonly pool: PoolState;
  /** One for each endpoint of the pool, in their order. */
  readonly states: readonly EndpointState[];
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
  /** Addresses that the proxy allows; undefined = all. */
  readonly subset: readonly string[] | undefined;
  readonly seed: bigint;
}

/** The clock stands still: all signals are of this moment. */
const NOW_MS = 1;
/** Threads of the pool memory: one that writes, one that decides. */
const WRITER = 0;
const DECIDER = 1;

/**
 * Decides one request in a pool made for it alone, by the same core, scanner and rules as the picker, and tells what
 * each operation did. Nothing is opened and nothing is kept.
 */
export function explain(input: ExplainInput): Explanation {
  const bench = new ExplainBench(input);
  try {
    return bench.explain();
  } finally {
    bench.close();
  }
}

class ExplainBench {
  readonly #input: ExplainInput;
  readonly #control: CoreInstance;
  readonly #core: CoreInstance;
  readonly #table: EndpointTable;
  readonly #programs: ProgramTable;
  readonly #scanner: RequestScanner;
  readonly #directory = new EndpointDirectory();
  readonly #blockTokens: number;
  readonly #plugins: ExplainedPlugins;
  #body: RequestBody | undefined;

  constructor(input: ExplainInput) {
    this.#input = input;
    this.#blockTokens = input.configuration.scheduling.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS;
    const inFlight = input.states.reduce((sum, state) => sum + state.inFlightRequests, 0);
    const memory = createPoolMemory(
      {
        ...defaultPoolSizes,
        endpoints: Math.max(64, input.pool.endpoints.length),
        indexBlocks: 65_536,
        requests: Math.max(1024, inFlight),
        threads: 2,
        scans: 4,
        telemetryBytes: 65_536,
      },
      { hashSeed: 0n },
    );
    this.#control = attachCore(memory, WRITER);
    this.#core = attachCore(memory, DECIDER);
    this.#table = new EndpointTable(this.#control);
    this.#programs = new ProgramTable(this.#control);
    new CostTable(this.#control).write(new CostModel(input.configuration.adaptation.model).coefficients);
    this.#scanner = new RequestScanner(this.#core);
    openOfflineEndpoints(
      {
        control: this.#control,
        table: this.#table,
        directory: this.#directory,
        scheduling: input.configuration.scheduling,
      },
      input.pool.endpoints,
      input.states,
      NOW_MS,
    );
    this.#plugins = new ExplainedPlugins({
      core: this.#core,
      directory: this.#directory,
      scheduling: input.configuration.scheduling,
      registry: input.registry,
      seed: input.seed,
      nowMs: NOW_MS,
    });
  }

  close(): void {
    this.#body?.close();
    this.#plugins.close();
  }

  explain(): Explanation {
    const { configuration, pool, headers } = this.#input;
    const rules = new RequestRules(pool);
    const requestHeaders: RequestHeaders = headers;
    const path = requestPath(requestHeaders);
    const dialect = createDialects(configuration.parsers as readonly ParserName[]).find(path);
    if ('kind' in dialect) return rejected(dialect);
    const understood = this.#understand(dialect, rules, requestHeaders);
    if (understood.kind === 'rejected') return rejected(understood);
    const prompt = this.#prompt(understood);
    this.#chargeInFlight();
    const hint = this.#input.subset;
    const full = this.#saturation(hint === undefined ? undefined : this.#directory.resolve(hint));
    const hookRequest = this.#plugins.begin(requestHeaders, path, understood.priority, namedFairnessId(requestHeaders));
    const allowed = this.#plugins.allow(hookRequest, hint, understood);
    if (allowed !== undefined && 'kind' in allowed) return rejected(allowed);
    const subset = allowed === undefined ? undefined : this.#directory.resolve(allowed);
    const { requestKeys, baseModels } = configuration.scheduling;
    const wanted = wantedTimes(requestHeaders, configuration.adaptation.objectiveTimes);
    const decision: Omit<DecisionRequest, 'profile'> = {
      blocks: prompt.blocks,
      tail: prompt.tail,
      blockTokens: this.#blockTokens,
      promptTokens: prompt.tokens,
      outputTokens: 0,
      priority: understood.priority,
      adapter: understood.targetModel,
      wantedTtftMs: wanted.ttftMs,
      wantedTpotMs: wanted.tpotMs,
      nowMs: NOW_MS,
      subset,
      charged: false,
      explained: true,
      keys: requestKeys.map((header) => requestHeaders.get(header)),
      baseModel: baseModels.includes(understood.targetModel),
    };
    return {
      kind: 'explained',
      request: {
        path,
        parser: dialect.parser,
        model: understood.model,
        targetModel: understood.targetModel,
        rewriteRule: understood.rewriteRule,
        priority: understood.priority,
        fairnessId: hookRequest.fairnessId ?? understood.fairnessId,
        promptTokens: prompt.tokens,
        promptBlocks: prompt.blocks + (prompt.tail ? 1 : 0),
      },
      signals: this.#signals(),
      saturation: full,
      shed: understood.priority < 0 && full >= 1,
      scheduler: this.#plugins.scheduler,
      failedPlugins: this.#plugins.failures,
      ...this.#handled(this.#plugins.input(hookRequest, understood, allowed, requestHeaders), decision),
    };
  }

  #signals(): readonly ExplainedSignals[] {
    const { pool, states, configuration } = this.#input;
    return states.map((state, slot) => ({
      name: pool.endpoints[slot]!.name,
      waitingRequests: state.waitingRequests ?? null,
      runningRequests: state.runningRequests ?? null,
      kvUsage: state.kvUsage ?? null,
      attributes: Object.fromEntries(
        configuration.scheduling.attributes.map((attribute) => [attribute, state.attributes[attribute] ?? null]),
      ),
      inFlightRequests: state.inFlightRequests,
      inFlightTokens: state.inFlightTokens,
    }));
  }

  /** Runs the profiles as the profile handler wants them. */
  #handled(input: ScheduleInput, decision: Omit<DecisionRequest, 'profile'>) {
    const { profiles, handler } = this.#input.configuration.scheduling;
    const definitions = new Map(this.#input.registry.map((definition) => [definition.type, definition]));
    const runs = new ExplainedRuns(
      input,
      decision.promptTokens,
      profiles.map(({ name }) => name),
      (name, work, earlier) => {
        this.#plugins.fill(input, name);
        return this.#profile(profiles.find((profile) => profile.name === name)!, work, { ...decision, earlier });
      },
      this.#directory,
      this.#blockTokens,
    );
    const outcome = outcomeOf(makeProfileHandler(handler, definitions).handle(runs));
    return { handler: { name: handler.name, type: handler.type }, outcome, profiles: runs.all() };
  }

  #understand(dialect: Dialect, rules: RequestRules, headers: RequestHeaders): UnderstoodRequest | Rejection {
    const { body } = this.#input;
    const requester = requesterOf(headers, rules);
    if (body.length === 0) return understandHeaders(headers, requester, rules);
    const limit = Number.MAX_SAFE_INTEGER;
    this.#body = new RequestBody(dialect, this.#scanner, this.#blockTokens * TOKEN_BYTES, limit);
    const refused = this.#body.append(body);
    if (refused !== undefined) return refused;
    const scan = this.#body.finish();
    if (scan === undefined) return understandOpaque(requester, rules);
    if ('kind' in scan) return scan;
    return understand(scan, dialect, headers, requester, rules, seededRandom(this.#input.seed), () => [body]);
  }

  /** Writes the prompt's hashes for the decisions, and believes the endpoints to hold what their states say. */
  #prompt({ promptBytes, targetModel }: UnderstoodRequest) {
    const { configuration, states } = this.#input;
    const { prefix } = configuration.scheduling;
    const tokens = Math.ceil(promptBytes / TOKEN_BYTES);
    const scan = this.#body?.scan ?? -1;
    if (scan < 0 || prefix === undefined) return { blocks: 0, tail: false, tokens };
    const chain = this.#scanner.chain(scan, targetModel);
    const blocks = Math.min(chain.blocks, prefix.maxBlocks);
    const index = new PrefixIndex(this.#core);
    for (const [slot, { cachedTokens }] of states.entries()) {
      const held = Math.min(Math.floor(cachedTokens / this.#blockTokens), blocks);
      if (held > 0) index.insert(slot, held);
    }
    return { blocks, tail: chain.tail && chain.blocks < prefix.maxBlocks, tokens };
  }

  /** Charges requests in flight one by one, as the picker does. */
  #chargeInFlight(): void {
    const only: Operation[] = [{ code: 'OP_PICK_RANDOM', weight: 1, parameters: [1] }];
    this.#programs.publish(0, only, { inserts: false });
    const decider = new Decider(this.#core, this.#input.seed);
    for (const [slot, { inFlightRequests, inFlightTokens }] of this.#input.states.entries()) {
      for (let i = 0; i < inFlightRequests; i++) {
        decider.decide({
          profile: 0,
          blocks: 0,
          tail: false,
          blockTokens: this.#blockTokens,
          promptTokens: i === 0 ? inFlightTokens : 0,
          outputTokens: 0,
          priority: 0,
          adapter: '',
          nowMs: NOW_MS,
          subset: [slot],
          charged: true,
          explained: false,
        });
      }
    }
  }

  #saturation(subset: readonly number[] | undefined): number {
    const settings = this.#input.configuration.saturationDetector;
    if (settings === undefined) return 0;
    return saturation(this.#table, subset ?? this.#directory.slots(), settings, NOW_MS);
  }

  #profile(
    profile: CompiledProfile,
    work: PickWork | undefined,
    request: Omit<DecisionRequest, 'profile'>,
  ): ExplainedRun {
    const removedBy = this.#removals(profile, request);
    const decider = this.#decider(profile);
    const { status, filter, slots, matchedBlocks, totalBlocks } = decider.decide({ ...request, profile: 0 });
    const picks = [...slots];
    const scorers = [...profile.operations.entries()].filter(([, operation]) => operationKind(operation) === 'scorer');
    const endpoints = this.#input.pool.endpoints.map((endpoint, slot) => {
      const out = removedBy.get(slot);
      const position = picks.indexOf(slot);
      return {
        ...named(endpoint),
        removedBy: out,
        scores: Object.fromEntries(
          out === undefined ? scorers.map(([at, { name }]) => [name, decider.explainedOf(at, slot)]) : [],
        ),
        total: out === undefined ? decider.scoreOf(slot) : undefined,
        cachedTokens: Math.min(decider.matchedOf(slot) * this.#blockTokens, request.promptTokens),
        rank: position < 0 ? undefined : position + 1,
      };
    });
    const explained = {
      name: profile.name,
      work,
      status,
      leftNoneBy: steadyFilter(profile.filters, filter),
      scorers: scorers.map(([, { name, weight }]) => ({ name, weight })),
      picker: profile.operations.find((operation) => operationKind(operation) === 'picker')?.name ?? '',
      endpoints,
      best: shareOfBest(endpoints),
    };
    return { explained, decision: { slots: picks, matchedBlocks, totalBlocks } };
  }

  /**
   * Operation that took each slot out: the program is run up to every filter in turn, each time with the same seed, so
   * that every run draws what the whole one draws.
   */
  #removals(profile: CompiledProfile, request: Omit<DecisionRequest, 'profile'>): ReadonlyMap<number, string> {
    const removed = new Map<number, string>();
    const note = (operations: CompiledProfile['operations'], reason: string) => {
      const left = this.#candidates({ ...profile, operations }, request);
      for (const slot of this.#input.pool.endpoints.keys()) {
        if (!left.has(slot) && !removed.has(slot)) removed.set(slot, reason);
      }
    };
    const hint = this.#input.subset;
    const allowed = new Set(hint === undefined ? [] : this.#directory.resolve(hint));
    for (const slot of this.#input.pool.endpoints.keys()) {
      if (hint !== undefined && !allowed.has(slot)) removed.set(slot, 'subset');
    }
    note([], 'screener');
    for (const [at, operation] of profile.operations.entries()) {
      if (operationKind(operation) === 'filter') note(profile.operations.slice(0, at + 1), operation.name);
    }
    return removed;
  }

  #candidates(profile: CompiledProfile, request: Omit<DecisionRequest, 'profile'>): ReadonlySet<number> {
    const decider = this.#decider(profile);
    const { status } = decider.decide({ ...request, profile: 0 });
    if (status !== 'decided') return new Set();
    return new Set([...this.#input.pool.endpoints.keys()].filter((slot) => decider.isCandidate(slot)));
  }

  /** A decider with the first numbers of the seed, and the profile as the only program. */
  #decider({ operations }: CompiledProfile): Decider {
    this.#programs.publish(0, operations, { inserts: this.#input.configuration.scheduling.prefix !== undefined });
    return new Decider(this.#core, this.#input.seed);
  }
}

function outcomeOf(handled: HandledRequest | Rejection): ExplainedOutcome {
  if (handled.kind === 'rejected') {
    return { kind: 'rejected', status: STATUS_OF_CODE[handled.code], message: handled.message };
  }
  const { primary, port, headers } = handled;
  const { endpoint, address } = primary.endpoints[0]!;
  return {
    kind: 'placed',
    profile: primary.profile,
    address: port === undefined ? address : endpointAddress({ address: endpoint.address, port }),
    headers: Object.fromEntries([...(headers ?? [])].map(([name, value]) => [name, value ?? null])),
  };
}

function named(endpoint: Endpoint): { readonly name: string; readonly address: string } {
  return { name: endpoint.name, address: endpointAddress(endpoint) };
}

/** Totals are sums of 32-bit numbers; what differs by less than this is equal to the eye. */
const SAME_TOTAL = 1e-6;

function shareOfBest(endpoints: readonly ExplainedEndpoint[]): number {
  const totals = endpoints.flatMap(({ total }) => (total === undefined ? [] : [total]));
  const best = Math.max(...totals);
  return totals.filter((total) => best - total < SAME_TOTAL).length;
}

function rejected({ code, message }: Rejection): Explanation {
  return { kind: 'rejected', code, status: STATUS_OF_CODE[code], message };
}
