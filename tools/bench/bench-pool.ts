import { CostModel } from '../../src/adaptation/cost-model.js';
import type { LoadedConfiguration } from '../../src/config/load.js';
import type { Endpoint } from '../../src/contract/endpoint.js';
import { CostTable } from '../../src/core/coefficients.js';
import { Decider } from '../../src/core/decider.js';
import type { Decision, DecisionRequest } from '../../src/core/decision-data.js';
import { EndpointTable } from '../../src/core/endpoint-table.js';
import { attachCore, type CoreInstance, createPoolMemory, defaultPoolSizes } from '../../src/core/memory.js';
import type { Operation } from '../../src/core/operations.js';
import { PrefixIndex } from '../../src/core/prefix-index.js';
import { ProgramTable } from '../../src/core/programs.js';
import { seededRandom } from '../../src/runtime/seeded-random.js';
import { EndpointDirectory } from '../../src/scheduling/endpoint-directory.js';
import { PLAIN_BLOCK_TOKENS } from '../../src/scheduling/prompt-sizes.js';
import { openOfflineEndpoints } from '../explain/offline-endpoints.js';
import type { EndpointState } from '../explain/signals-file.js';

export interface BenchPoolOptions {
  readonly configuration: LoadedConfiguration;
  readonly endpoints: number;
  /** Blocks of every prompt. */
  readonly blocks: number;
  readonly seed: bigint;
}

const NOW_MS = 1;
/** Threads of the pool memory: one that writes, one that decides. */
const WRITER = 0;
const DECIDER = 1;
/** Different prompts. Their first half is one of so many shared beginnings. */
const PROMPTS = 512;
const BEGINNINGS = 16;
/** Requests in flight for each endpoint, so that no load column is all zero. */
const IN_FLIGHT = 4;
/** Model of every request, which three of ten endpoints run as a LoRA adapter. */
const ADAPTER = 'model';
/** Values of the headers that programs read, one after the other. */
const KEYS = 64;
/** A mask of labels selects all endpoints but every fourth. */
const MASK_LEAVES_OUT = 4;

/** A pool with a typical state, made from a seed, in which programs of one configuration decide. */
export class BenchPool {
  readonly core: CoreInstance;
  readonly directory = new EndpointDirectory();
  readonly configuration: LoadedConfiguration;
  readonly blocks: number;
  readonly #programs: ProgramTable;
  readonly #decider: Decider;
  readonly #index: PrefixIndex;
  readonly #chains: readonly BigUint64Array[];
  readonly #request: DecisionRequest;
  readonly #keys: readonly (readonly string[])[];
  #next = 0;

  constructor({ configuration, endpoints, blocks, seed }: BenchPoolOptions) {
    const { scheduling } = configuration;
    this.configuration = configuration;
    const memory = createPoolMemory(
      {
        ...defaultPoolSizes,
        endpoints: Math.max(64, endpoints),
        chainBlocks: Math.max(defaultPoolSizes.chainBlocks, blocks),
        indexBlocks: Math.max(65_536, PROMPTS * blocks),
        requests: Math.max(1024, (IN_FLIGHT + 1) * endpoints),
        threads: 2,
        scans: 4,
        telemetryBytes: 65_536,
      },
      { hashSeed: seed },
    );
    const control = attachCore(memory, WRITER);
    this.core = attachCore(memory, DECIDER);
    this.#programs = new ProgramTable(control);
    this.#index = new PrefixIndex(this.core);
    this.#decider = new Decider(this.core, seed);
    new CostTable(control).write(new CostModel(configuration.adaptation.model).coefficients);
    const random = seededRandom(seed);
    const table = new EndpointTable(control);
    const { directory } = this;
    const names = Array.from({ length: endpoints }, (_, slot) => endpoint(slot));
    const states = names.map(() => state(random, scheduling.attributes));
    openOfflineEndpoints({ control, table, directory, scheduling }, names, states, NOW_MS);
    const selected = [...names.keys()].filter((slot) => slot % MASK_LEAVES_OUT !== MASK_LEAVES_OUT - 1);
    for (const mask of scheduling.masks.keys()) table.setMask(mask, selected);
    const prefix = scheduling.prefix;
    this.blocks = prefix === undefined ? 0 : Math.min(blocks, prefix.maxBlocks);
    const blockTokens = prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS;
    this.#chains = chains(random, this.blocks);
    this.#keys = Array.from({ length: KEYS }, (_, key) => scheduling.requestKeys.map(() => `key-${key}`));
    this.#request = {
      profile: 0,
      blocks: this.blocks,
      tail: false,
      blockTokens,
      promptTokens: blocks * blockTokens,
      outputTokens: 0,
      priority: 0,
      adapter: ADAPTER,
      nowMs: NOW_MS,
      subset: undefined,
      charged: false,
      explained: false,
    };
    this.#chargeInFlight(endpoints);
  }

  /** Tokens of every prompt. */
  get promptTokens(): number {
    return this.#request.promptTokens;
  }

  /** Makes `operations` the program of the following decisions. */
  publish(operations: readonly Operation[]): void {
    this.#programs.publish(0, operations, { inserts: this.configuration.scheduling.prefix !== undefined });
  }

  /** Writes the hashes of the next prompt. */
  nextPrompt(): void {
    this.#next = this.#next + 1 === PROMPTS ? 0 : this.#next + 1;
    this.#index.writeHashes(this.#chains[this.#next]!);
  }

  /** Looks up the holders of the next prompt, as a decision does. */
  match(): void {
    this.nextPrompt();
    this.#decider.matchAhead(this.blocks, false);
  }

  /** Decides the next prompt and charges nothing. */
  decideOnly(): Decision {
    this.nextPrompt();
    return this.#decider.decide({ ...this.#request, keys: this.#keys[this.#next % KEYS] });
  }

  /** Decides the next prompt, charges and stores it, and releases the charge. */
  decideAndRelease(): void {
    this.nextPrompt();
    const request = { ...this.#request, keys: this.#keys[this.#next % KEYS], charged: true };
    const { ticket, ticketGeneration } = this.#decider.decide(request);
    this.#decider.release(ticket, ticketGeneration);
  }

  #chargeInFlight(endpoints: number): void {
    this.publish([{ code: 'OP_PICK_RANDOM', weight: 1, parameters: [1] }]);
    for (let i = 0; i < IN_FLIGHT * endpoints; i++) {
      this.nextPrompt();
      this.#decider.decide({ ...this.#request, charged: true });
    }
  }
}

function endpoint(slot: number): Endpoint {
  const name = `endpoint-${slot}`;
  const labels = { zone: `zone-${slot % 3}`, 'llm-d.ai/role': 'both' };
  const address = `10.${slot >> 16}.${(slot >> 8) & 255}.${slot & 255}`;
  return { id: `default/${name}`, name, namespace: 'default', address, port: 8000, labels };
}

/** Signals of an endpoint under medium load: some have a queue, none is full. */
function state(random: () => number, attributes: readonly string[]): EndpointState {
  return {
    waitingRequests: Math.floor(random() * 7),
    runningRequests: Math.floor(random() * 13),
    kvUsage: random() / 2,
    loraAdapters: { running: random() < 0.3 ? [ADAPTER] : [], waiting: [], max: 4 },
    inFlightRequests: 0,
    inFlightTokens: 0,
    cachedTokens: 0,
    attributes: Object.fromEntries(attributes.map((attribute) => [attribute, random()])),
  };
}

function chains(random: () => number, blocks: number): readonly BigUint64Array[] {
  const hash = () => (BigInt(Math.floor(random() * 2 ** 32)) << 32n) | BigInt(Math.floor(random() * 2 ** 32));
  const beginnings = Array.from({ length: BEGINNINGS }, () => BigUint64Array.from({ length: blocks >> 1 }, hash));
  return Array.from({ length: PROMPTS }, (_, i) => {
    const shared = beginnings[i % BEGINNINGS]!;
    return BigUint64Array.from({ length: blocks }, (_, block) => shared[block] ?? hash());
  });
}
