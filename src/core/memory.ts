import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { CoreAssertions } from './assertions.js';
import { CoreCheckError, LockChecks } from './core-checks.js';
import { CORE, type CoreConstant, type CoreFunctions, uniformCalls } from './core-names.js';

/** Sizes of one pool's shared memory. All are bounds: nothing grows after the memory was made. */
export interface PoolSizes {
  /** Endpoint slots; rounded up to a multiple of 64, at most 10,240. */
  readonly endpoints: number;
  /** Bound on the unique blocks of the prefix index. */
  readonly indexBlocks: number;
  /** Bound on the requests in flight in the ledger. */
  readonly requests: number;
  /** Bound on the blocks of a prompt; a longer prompt is matched by its first blocks. At most 65,535. */
  readonly chainBlocks: number;
  /** Bound on the attached threads, the control thread (0) included. */
  readonly threads: number;
  /** Bound on the open request scans and on the open response scans, per thread. */
  readonly scans: number;
  /** Bytes of telemetry cells per thread. */
  readonly telemetryBytes: number;
  /** Records of the decision log per thread; absent = 1,024, 0 = no log. */
  readonly decisions?: number | undefined;
  /** Threads from 0 on that keep a decision log; absent = all. */
  readonly decisionThreads?: number | undefined;
  /** Bytes per thread for the columns of decisions; absent = 65,536, 0 = no columns. */
  readonly decisionColumnBytes?: number | undefined;
  /** Bytes per thread of the ring of placed prompts, a power of two; absent or 0 = none (no replicas). */
  readonly changeBytes?: number | undefined;
}

export const defaultPoolSizes: PoolSizes = {
  endpoints: 512,
  indexBlocks: 1_048_576,
  requests: 16_384,
  chainBlocks: 8_192,
  threads: 16,
  scans: 4_096,
  telemetryBytes: 4 << 20,
};

/** Handles with which a thread attaches. They travel as worker data; the memory is not copied. */
export interface PoolMemory {
  readonly memory: WebAssembly.Memory;
  readonly module: WebAssembly.Module;
}

/** One thread's instance of the core over a pool's memory. */
export interface CoreInstance {
  readonly thread: number;
  readonly sizes: PoolSizes;
  readonly memory: WebAssembly.Memory;
  /** Exported functions; the exported constants are CORE. */
  readonly call: CoreFunctions;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly u32: Uint32Array;
  readonly i32: Int32Array;
  readonly f32: Float32Array;
  readonly f64: Float64Array;
  /** Assertions; undefined on the release core. */
  readonly asserts: CoreAssertions | undefined;
}

type RequiredSize = Exclude<keyof PoolSizes, 'decisions' | 'decisionThreads' | 'decisionColumnBytes' | 'changeBytes'>;

/** Sizes of the decision log where none are given. */
const LOG_SIZES = { decisions: 1024, decisionColumnBytes: 65_536 };

/** Header word of each size. */
const sizeWords: ReadonlyArray<readonly [RequiredSize, number]> = [
  ['endpoints', CORE.HEADER_ENDPOINTS],
  ['indexBlocks', CORE.HEADER_INDEX_BLOCKS],
  ['requests', CORE.HEADER_REQUESTS],
  ['chainBlocks', CORE.HEADER_CHAIN_BLOCKS],
  ['threads', CORE.HEADER_THREADS],
  ['scans', CORE.HEADER_SCANS],
  ['telemetryBytes', CORE.HEADER_TELEMETRY_BYTES],
];

/** `debug` holds assertions and checks its structures at every release of a lock; it is several times slower. */
export type CoreBuild = 'release' | 'debug';

const builds: Readonly<Record<CoreBuild, URL>> = {
  release: new URL('./core.wasm', import.meta.url),
  debug: new URL('./core-debug.wasm', import.meta.url),
};

/** The build that is loaded where none is named: the environment variable POINTSMAN_CORE, or `release`. */
function namedBuild(): CoreBuild {
  const name = process.env.POINTSMAN_CORE ?? 'release';
  if (name !== 'release' && name !== 'debug')
    throw new Error(`POINTSMAN_CORE is ${JSON.stringify(name)}: use "release" or "debug"`);
  return name;
}

/**
 * Compiles the core's Wasm module.
 * @throws when the build is missing, with the command that makes it.
 */
export function loadCoreModule(build: CoreBuild | URL = namedBuild()): WebAssembly.Module {
  const url = build instanceof URL ? build : builds[build];
  let bytes: Buffer;
  try {
    bytes = readFileSync(url);
  } catch (cause) {
    throw new Error(`the Wasm build is missing (${url.pathname}): run "npm run build"`, { cause });
  }
  return new WebAssembly.Module(new Uint8Array(bytes));
}

/**
 * Makes the shared memory of a pool at its full size and lays out its regions.
 * @param hashSeed 64-bit seed of the block hashes; random unless a test or a replay sets it.
 * @throws RangeError when a size is out of range or the whole does not fit into 4 GiB
 * @throws MemoryRefused when the machine does not give it
 */
export function createPoolMemory(
  sizes: PoolSizes = defaultPoolSizes,
  options: { readonly module?: WebAssembly.Module; readonly hashSeed?: bigint } = {},
): PoolMemory {
  const module = options.module ?? loadCoreModule();
  const seed = options.hashSeed ?? randomBytes(8).readBigUInt64LE();
  const memory = sharedMemory(pagesOf(sizes, module));
  writeHeader(memory, module, sizes, seed);
  const pool = { memory, module };
  attachCore(pool, 0).call.initialise();
  return pool;
}

/**
 * Bytes of the shared memory of a pool. Nothing is reserved.
 * @throws RangeError when a size is out of range or the whole does not fit into 4 GiB
 */
export function poolMemoryBytes(sizes: PoolSizes, module: WebAssembly.Module): number {
  return pagesOf(sizes, module) * PAGE_BYTES;
}

function pagesOf(sizes: PoolSizes, module: WebAssembly.Module): number {
  checkSizes(sizes);
  const pages = writeHeader(sharedMemory(2), module, sizes, 0n);
  if (pages === 0) throw new MemoryTooLarge();
  return pages;
}

/** The sizes of a pool need more than a memory can have. */
export class MemoryTooLarge extends RangeError {
  override readonly name = 'MemoryTooLarge';

  constructor() {
    super('the pool memory would need more than 4 GiB: lower indexBlocks or endpoints');
  }
}

/** The machine, or a limit on the process, does not give a shared memory of this size. */
export class MemoryRefused extends Error {
  override readonly name = 'MemoryRefused';
  readonly bytes: number;

  constructor(bytes: number) {
    super(`${bytes} bytes of shared memory could not be had`);
    this.bytes = bytes;
  }
}

const PAGE_BYTES = 65_536;

function sharedMemory(pages: number): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  } catch (error) {
    if (error instanceof RangeError) throw new MemoryRefused(pages * PAGE_BYTES);
    throw error;
  }
}

function checkSizes(sizes: PoolSizes): void {
  for (const [name] of sizeWords) {
    if (!Number.isInteger(sizes[name]) || sizes[name] < 1)
      throw new RangeError(`${name} must be a whole number of at least 1`);
  }
  for (const name of ['decisions', 'decisionThreads', 'decisionColumnBytes'] as const) {
    const size = sizes[name];
    if (size !== undefined && !(Number.isInteger(size) && size >= 0))
      throw new RangeError(`${name} must be a whole number of at least 0`);
  }
  const { changeBytes = 0 } = sizes;
  if (!Number.isInteger(changeBytes) || changeBytes < 0 || (changeBytes & (changeBytes - 1)) !== 0)
    throw new RangeError('changeBytes must be 0 or a power of two');
  if (sizes.endpoints > CORE.ENDPOINTS_MAX) throw new RangeError(`endpoints must be at most ${CORE.ENDPOINTS_MAX}`);
  if (sizes.chainBlocks > CORE.CHAIN_BLOCKS_MAX)
    throw new RangeError(`chainBlocks must be at most ${CORE.CHAIN_BLOCKS_MAX}`);
}

function writeHeader(memory: WebAssembly.Memory, module: WebAssembly.Module, sizes: PoolSizes, seed: bigint): number {
  const view = new DataView(memory.buffer);
  const put = (word: number, value: number) => view.setUint32(CORE.HEADER + word, value, true);
  put(CORE.HEADER_MAGIC, CORE.MAGIC);
  put(CORE.HEADER_VERSION, CORE.LAYOUT_VERSION);
  for (const [name, word] of sizeWords) put(word, sizes[name]);
  put(CORE.HEADER_DECISIONS, sizes.decisions ?? LOG_SIZES.decisions);
  put(CORE.HEADER_DECISION_THREADS, Math.min(sizes.decisionThreads ?? sizes.threads, sizes.threads));
  put(CORE.HEADER_DECISION_COLUMN_BYTES, sizes.decisionColumnBytes ?? LOG_SIZES.decisionColumnBytes);
  put(CORE.HEADER_CHANGE_BYTES, sizes.changeBytes ?? 0);
  put(CORE.HEADER_ENDPOINTS, (sizes.endpoints + 63) & ~63);
  view.setBigUint64(CORE.HEADER + CORE.HEADER_HASH_SEED_LOW, seed, true);
  const call = instantiate(memory, module);
  return call.plan() >>> 0;
}

function instantiate(memory: WebAssembly.Memory, module: WebAssembly.Module): CoreFunctions {
  let checks: LockChecks | undefined;
  const abort = (message: number, file: number, line: number) => {
    throw new CoreCheckError(
      `${staticText(memory, file)}:${line}: it does not hold that ${staticText(memory, message)}`,
    );
  };
  const lockReleasing = (lock: number) => {
    checks ??= new LockChecks(call, sizesOf(memory));
    checks.releasing(lock);
  };
  const { exports } = new WebAssembly.Instance(module, { env: { memory, abort }, lock: { lockReleasing } });
  if (!checkedModules.has(module)) checkConstants(exports);
  checkedModules.add(module);
  const call = uniformCalls(exports as unknown as CoreFunctions);
  return call;
}

/** A text of the debug build's static data: UTF-16, its length in bytes in the word before it. */
function staticText({ buffer }: WebAssembly.Memory, address: number): string {
  if (address === 0) return 'the core may go on';
  const length = new DataView(buffer).getUint32(address - 4, true);
  // Copied: a decoder takes no shared memory.
  return new TextDecoder('utf-16le').decode(new Uint8Array(buffer).slice(address, address + length));
}

/** Sizes that the header of a pool's memory holds. */
function sizesOf({ buffer }: WebAssembly.Memory): PoolSizes {
  const view = new DataView(buffer);
  const sizes = sizeWords.map(([name, word]) => [name, view.getUint32(CORE.HEADER + word, true)]);
  return {
    ...(Object.fromEntries(sizes) as unknown as PoolSizes),
    decisions: view.getUint32(CORE.HEADER + CORE.HEADER_DECISIONS, true),
    decisionThreads: view.getUint32(CORE.HEADER + CORE.HEADER_DECISION_THREADS, true),
    decisionColumnBytes: view.getUint32(CORE.HEADER + CORE.HEADER_DECISION_COLUMN_BYTES, true),
    changeBytes: view.getUint32(CORE.HEADER + CORE.HEADER_CHANGE_BYTES, true),
  };
}

/** Modules of the same build as this file: their instances need no second look. */
const checkedModules = new WeakSet<WebAssembly.Module>();

/** Refuses a module of another build than this file, whose offsets would differ. */
function checkConstants(exports: WebAssembly.Exports): void {
  for (const name of Object.keys(CORE) as CoreConstant[]) {
    const constant = exports[name];
    const value: unknown = constant instanceof WebAssembly.Global ? constant.value : undefined;
    if (value !== CORE[name] && value !== (CORE[name] | 0))
      throw new Error(`the Wasm build has ${name} = ${value}, expected ${CORE[name]}: run "npm run build"`);
  }
}

/** Whether a module is the debug build: only that one imports the checks at the release of a lock. */
function isDebug(module: WebAssembly.Module): boolean {
  return WebAssembly.Module.imports(module).some(({ name }) => name === 'lockReleasing');
}

/**
 * Attaches this thread to a pool's memory.
 * @param thread 0 for the control thread, else a number below `threads` that no other live thread uses.
 * @throws when the memory was laid out by another version of the module.
 */
export function attachCore(pool: PoolMemory, thread: number): CoreInstance {
  const call = instantiate(pool.memory, pool.module);
  const refused = call.attach(thread);
  if (refused === 1) throw new Error('the shared memory was laid out by another version of the core');
  if (refused === 2) throw new RangeError(`thread ${thread} is out of range: raise "threads"`);
  const { buffer } = pool.memory;
  const view = new DataView(buffer);
  const sizes = sizesOf(pool.memory);
  return {
    thread,
    sizes,
    memory: pool.memory,
    call,
    bytes: new Uint8Array(buffer),
    view,
    u32: new Uint32Array(buffer),
    i32: new Int32Array(buffer),
    f32: new Float32Array(buffer),
    f64: new Float64Array(buffer),
    asserts: isDebug(pool.module) ? new CoreAssertions({ thread, sizes, call, view }) : undefined,
  };
}
