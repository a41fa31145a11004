import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CORE, type CoreFunctions } from '../../dist/src/core/core-names.js';
import { attachCore, createPoolMemory, loadCoreModule } from '../../dist/src/core/memory.js';
import { importsOf } from '../../scripts/assembly-arrows.ts';
import { smallSizes } from './pool.ts';

const assembly = fileURLToPath(new URL('../../assembly/', import.meta.url));
const module = loadCoreModule('debug');

/** Values that no export takes. */
const SLOT = smallSizes.endpoints;
const THREAD = smallSizes.threads;
const SCAN = smallSizes.scans + 1;
const TICKET = smallSizes.requests + 1;
const BLOCKS = smallSizes.chainBlocks + 2;
const BYTES = CORE.THREAD_INPUT_BYTES + 1;
const OUTSIDE = -8;
const TIME = Number.NaN;

/** For each function arguments that it does not take, and what must hold instead. */
const REFUSED: Partial<Record<keyof CoreFunctions, readonly [what: string, ...args: (number | bigint)[]]>> = {
  activeAdd: ['the slot is one of the pool', SLOT, 1],
  activeAddLocked: ['active blocks change under the index lock', 0, 1],
  activeOf: ['the slot is one of the pool', SLOT],
  activeOverlap: ['the blocks are those of one chain', 0, BLOCKS],
  activeRemove: ['the slot is one of the pool', SLOT, 0, 1],
  activeRemoveLocked: ['active blocks change under the index lock', 0, 0, 1],
  activeRepairAdd: ['the slot is one of the pool', SLOT, 0, 1],
  adapterShown: ['the name is in the memory', OUTSIDE],
  bellAddress: ['the thread is one of the pool', THREAD],
  chargesOfPeers: ['charges are of peers or not', 2],
  changesAddress: ['the thread is one of the pool', THREAD],
  coefficientsWrite: ['the coefficients are in the memory', OUTSIDE],
  columnAddress: ['the column is one of the endpoints', 1_000],
  complete: ['the ticket is none or names an entry of the ledger', TICKET, 1, 0, 0],
  endpointAdapters: ['the adapters fit into the row of the endpoint', 0, CORE.ADAPTERS_PER_ENDPOINT, 1, 1],
  endpointAlive: ['the time is one of the pool clock', 0, 1, TIME],
  endpointAttribute: ['the slot is one of the pool', SLOT, 0, 1],
  endpointCost: ['`speed` is a number from 0 on', 0, 1, -1, 1, 0, 0, 0, 0, 0],
  endpointDead: ['the time is one of the pool clock', 0, 1, TIME],
  endpointForget: ['the reason of the loss is a known one', 0, CORE.LOSS_UNCONFIRMED + 1],
  endpointHeard: ['the slot is one of the pool', SLOT, 1],
  endpointOpen: ['a slot in use has a generation', 0, 0],
  endpointReachable: ['`reachable` is 0 or 1', 0, 1, 2, 0],
  endpointSignals: ['the signals are known ones', 0, 16, 0, 0, 0, 0, 0, 0],
  endpointSilent: ['the time is one of the pool clock', 0, 1, TIME],
  endpointStale: ['the slot is one of the pool', SLOT],
  endpointState: ['the state is one of endpoints', 0, CORE.STATE_DRAINING + 1],
  endpointRefused: ['the slot is one of the pool', SLOT, 1],
  endpointUntold: ['`untold` is 0 or 1', 0, 2],
  evictRequest: ['the wait slot is one of the thread', 0, SCAN, 0],
  evictionLost: ['the ticket is none or names an entry of the ledger', TICKET, 1],
  gateBand: ['the time is one of the pool clock', 0, TIME],
  gateCeiling: ['`ceiling` is a number from 0 on', 0, Number.NaN],
  gateConfigure: ['the mode is one of the gate', CORE.GATE_WORST + 1, 0, 0, 0, 0, 0, 0, 0, 0],
  gateDrains: ['`seconds` is a number from 0 on', 0, -1],
  gateUpdate: ['the time that has passed is not negative', 0, -1],
  gateRemote: ['the slot is one of the pool', SLOT, 0, 0, 0, 0],
  gateSaturation: ['the time is one of the pool clock', TIME],
  gateStageLimits: ['there are two stages', 2, 0, 0, 0, 0, 0, 0, 0],
  gateStagesOf: ['the slot is one of the pool', SLOT, 1],
  gateStep: ['the slot is one of the pool', SLOT, 1],
  gateUnseen: ['the time is one of the pool clock', TIME],
  grow: ['the ticket is none or names an entry of the ledger', TICKET, 1, 0, 0],
  hashBlocks: ['a block has bytes', 1, 0],
  hashBytesTo: ['the bytes are in the memory', OUTSIDE, 1, CORE.HEADER],
  hashKeyTo: ['the place of the hash is in the memory', CORE.HEADER, 1, OUTSIDE],
  hearingNext: ['the entry is one of the ledger, or the end of them', TICKET],
  heldTokens: ['the slot is one of the pool', SLOT],
  isCandidate: ['the slot is one of the pool', SLOT],
  isHeld: ['the ticket is none or names an entry of the ledger', TICKET, 1],
  labelAddress: ['the column is one of the labels', CORE.LABEL_COLUMNS],
  lockAcquire: ['the lock is one of the pool', CORE.HEADER, 0],
  lockOwner: ['the lock is one of the pool', CORE.HEADER],
  lockRelease: ['the lock is held by the thread that releases it', CORE.HEADER + CORE.HEADER_COMMIT_LOCK],
  lockSeize: ['a thread takes over no lock of its own', CORE.HEADER + CORE.HEADER_COMMIT_LOCK, 1],
  logRefusal: ['the time is one of the pool clock', TIME, 0, 0],
  matchAhead: ['`tail` is 0 or 1', 0, 2],
  matchedBelow: ['the place is below the GPU', 0, CORE.PLACE_GPU],
  moveCharge: ['the slot is one of the pool', 1, 1, SLOT, 1],
  noteOutcome: ['the result is a known one', 0, 1, CORE.RESULT_ANSWERED_ITSELF + 1, 0],
  peerEjection: ['`out` is 0 or 1', 0, 1, 2, 0],
  peerLoad: ['those that are pending are among the requests', 0, 1, 1, 0, 0, 0, 0, 2, 0],
  pendingRequests: ['the slot is one of the pool', SLOT],
  predictionLearned: ['the slot is one of the pool', SLOT, 1],
  prefillDone: ['`keep` is 0 or 1', 1, 1, 2, 0],
  prefillElsewhere: ['the ticket is none or names an entry of the ledger', TICKET, 1],
  prefixApply: ['the log is in the memory', OUTSIDE, 16],
  prefixClear: ['the reason of the loss is a known one', 0, CORE.LOSS_UNCONFIRMED + 1],
  prefixCounter: ['the counter is one of the index', 1_000],
  prefixExport: ['the piece has room for its head', 1, CORE.HEADER, 1, 1],
  prefixHeld: ['the slot is one of the pool', SLOT],
  prefixInsert: ['the blocks are those of one chain', 0, BLOCKS],
  prefixInsertLocked: ['the index changes under its lock', 0, 1],
  prefixMatch: ['the blocks are those of one chain', BLOCKS],
  prefixMatchAt: ['the hashes are in the memory', OUTSIDE, 8],
  prefixMove: ['the place is one that has blocks', 0, 1, CORE.PLACE_REMOTE + 1],
  prefixMoveLocked: ['the index changes under its lock', 0, 1, CORE.PLACE_HOST],
  prefixRemove: ['the slot is one of the pool', SLOT, 1],
  prefixRemoveEndpoint: ['the slot is one of the pool', SLOT],
  prefixRemoveEndpointLocked: ['the index changes under its lock', 0, 0],
  prefixRemoveLocked: ['the index changes under its lock', 0, 1],
  prefixSetCapacity: ['the slot is one of the pool', SLOT, 1],
  prefixSetPrices: ['a price is from 0 to 1', 0.2, 1.5, 0],
  prefixStore: ['the hash of the parent is in the memory', 0, 1, OUTSIDE, 1, CORE.PLACE_GPU],
  prefixVerify: ['`on` is 0 or 1', 2],
  reclaimThread: ['a dead thread is another one of the pool', 1],
  regionAddress: ['the region is one of the memory', 1_000],
  regionSize: ['the region is one of the memory', 1_000],
  release: ['the ticket is none or names an entry of the ledger', TICKET, 1],
  responseFeed: ['the bytes fit into the input of the thread', 0, BYTES, 0],
  responseMessageBegin: ['the scan is one of the thread', SCAN],
  responseMessageEnd: ['the scan is one of the thread', SCAN],
  responseMessageFeed: ['`last` is 0 or 1', 0, 0, 2],
  responseOpen: ['the name fits into the scan', 0, 0, 0, CORE.NAME_BYTES_MAX + 1],
  responseScanAddress: ['the scan is one of the thread', SCAN],
  room: ['the column is one of the gate', 1_000, 0],
  sampleWrite: ['the outcome is a known one', 1, 1, CORE.OUTCOME_DIVERTED + 1, 0, 0, 0, 0, 0, 0, 0, 0],
  scanBeginning: ['the scan is one of the thread', SCAN],
  scanChain: ['the name is in the memory', 0, OUTSIDE, 16],
  scanClose: ['the scan is one of the thread', SCAN],
  scanFeed: ['the scan is one of the thread', SCAN, 0],
  scanFinish: ['the scan is one of the thread', SCAN],
  scanFlaws: ['the scan is one of the thread', SCAN],
  scanMediaSeen: ['the scan is one of the thread', SCAN],
  scanPromptBytes: ['the scan is one of the thread', SCAN],
  scanRegionBytes: ['a thread has scans, and a chain has blocks', 0, 1],
  scanTail: ['the scan is one of the thread', SCAN],
  scoreOf: ['the slot is one of the pool', SLOT],
  scrapeBegin: ['the query is one of the thread', CORE.SCRAPE_QUERIES],
  scrapeFeed: ['the bytes fit into the input of the thread', BYTES],
  sessionAddress: ['the number is one of a session', 0],
  sessionBegin: ['the number is one of a session', 0, 0, 1, 0, 0n, 1, 0],
  sessionEnd: ['the number is one of a session', 0, 0],
  sessionFree: ['the number is one of a session', 65_536],
  sessionGrow: ['the number is one of a session', 0, 1],
  sessionLapse: ['the number is one of a session', 0],
  sessionNest: ['the number is one of a session', 0, 0n],
  sessionShare: ['the number is one of a session', 0, 0, 0n],
  sessionIsElsewhere: ['the number is one of a session', 0],
  sessionOf: ['the step is a power of 2', CORE.HEADER, 8, 3],
  sessionsAgeEnd: ['the ages are those of the sessions', 33],
  sessionsConfigure: ['the mode is one of the sessions', 3, 0, 0, 0],
  sessionsCounter: ['the counter is one of the sessions', 1_000],
  sessionsForgotten: ['the slot is one of the pool', SLOT, 1],
  sessionsHosted: ['the slot is one of the pool', SLOT],
  sessionsGive: ['`usable` is a share above 0', 0, 0, -1, 0],
  sessionImport: ['the tag of a peer has 31 bits', 0x8000_0000, 0],
  sessionExport: ['the number is one of a session', 0],
  sessionsHear: ['the tag of a peer has 31 bits', 0x8000_0000, 0],
  sessionsKeptFor: ['the class is one of the sessions', 3],
  sessionsLeave: ['the slot is one of the pool', SLOT],
  sessionsOtherBegins: ['the slot is one of the pool', SLOT, 1],
  sessionsOtherEnds: ['the slot is one of the pool', SLOT, 1],
  sessionsPauses: ['the age is one of the sessions', 32],
  sessionsProtected: ['the slot is one of the pool', SLOT],
  sessionsShared: ['the slot is one of the pool', SLOT],
  sessionsTallied: ['the figure is one of a tally', 5],
  sessionsTally: ['the time is one of the pool clock', TIME],
  sessionsPeerGone: ['the tag of a peer has 31 bits', 0x8000_0000],
  sessionsTell: ['turns are told or not', 2],
  sessionsUsed: ['the slot is one of the pool', SLOT],
  sessionsTick: ['the time is one of the pool clock', TIME],
  setAnchors: ['the number is one of a session', 0, 0n, 0n],
  sharesAddress: ['the thread is one of the pool', THREAD],
  silenceProbed: ['the ticket of the probe is none or names an entry', 0, 1, TICKET, 0],
  storePick: ['the profile is one of the pool', CORE.PROFILES_MAX, 0, 0, 0],
  tailInsertLocked: ['the tails change under the index lock', 0, CORE.HEADER],
  tailMatch: ['the hash is in the memory', OUTSIDE, 1],
  telemetryAddress: ['the thread is one of the pool', THREAD],
  threadAddress: ['the thread is one of the pool', THREAD],
  threadCharges: ['the thread is one of the pool', THREAD],
  tokenChainAdd: ['a block has bytes', 1, 0],
  tokenChainBegin: ['name and salt fit into the input of the thread', 1, BYTES - 1],
  tokenChainMix: ['the bytes fit into the input of the thread', BYTES],
  tokenChainTail: ['the bytes fit into the input of the thread', BYTES],
  waitSlotAddress: ['the thread is one of the pool', THREAD, 0],
  waitSlotCancel: ['the wait slot is one of the thread', SCAN],
  waitSlotDispatch: ['the one candidate is a slot of the pool', 0, 0, SLOT, 0],
  waitSlotEnqueue: ['the wait slot is one of the thread', SCAN],
  waitSlotEnqueued: ['the thread is one of the pool', THREAD],
  waitSlotForget: ['the wait slot is one of the thread', 0, SCAN],
  waitSlotFree: ['the wait slot is one of the thread', SCAN],
  waitSlotMaskAddress: ['the wait slot is one of the thread', 0, SCAN],
  waitSlotNeed: ['the thread is one of the pool', THREAD, 0],
  waitSlotReject: ['the wait slot is one of the thread', 0, SCAN],
  weighMatches: ['the slots are those of the pool', SLOT + 1],
};

/** Functions with parameters that take every value. */
const ANY: Partial<Record<keyof CoreFunctions, string>> = {
  attach: 'returns why it refuses',
  gateBandsForget: 'any second of the pool clock',
  gateDrainsIn: 'any priority',
  keepColumnsEvery: 'any number of decisions, 0 = never',
  scanAddress: 'returns 0 for a scan that is not open',
  scanOpen: 'returns why it refuses',
  shadowEvery: 'any number of decisions, 0 = never',
  takeColumns: 'returns 0 when the bytes do not fit',
};

/** Names and bodies of the functions that assembly/exports/ lists. */
function exportedFunctions(): { readonly name: string; readonly parameters: string; readonly body: string }[] {
  const lists = globSync('exports/*.ts', { cwd: assembly });
  return lists.flatMap((list) => {
    const text = readFileSync(join(assembly, list), 'utf8');
    const files = importsOf(list, text).map((file) => readFileSync(join(assembly, `${file}.ts`), 'utf8'));
    return [...text.matchAll(/export \{([^}]*)\}/g)].flatMap(([, names], at) =>
      names!.split(',').flatMap((listed) => {
        const [inside = '', outside = inside] = listed.trim().split(' as ');
        const found = new RegExp(`export function ${inside}\\(([^)]*)\\)[^{]*\\{\\n([\\s\\S]*?)\\n\\}\\n`).exec(
          files[at]!,
        );
        return inside === '' || found === null
          ? []
          : [{ name: outside, parameters: found[1]!.trim(), body: found[2]! }];
      }),
    );
  });
}

const functions = exportedFunctions();

describe('the preconditions of the core', () => {
  it.each(Object.entries(REFUSED))('the preconditions of the core stop %s', (name, [what, ...args]) => {
    const { call } = attachCore(createPoolMemory(smallSizes, { module, hashSeed: 7n }), 1);
    const named = call as unknown as Readonly<Record<string, (...args: (number | bigint)[]) => unknown>>;
    expect(() => named[name]!(...args)).toThrow(`: it does not hold that ${what}`);
  });

  it.each([
    'inputAddress',
    'outputAddress',
    'requestAddress',
    'subsetAddress',
    'matchAddress',
    'overlapAddress',
    'hashesAddress',
    'hostAddress',
    'predictedAddress',
    'explainAddress',
  ] as const)('the preconditions of the core stop %s in an instance that is attached to no pool', (name) => {
    const { memory } = createPoolMemory(smallSizes, { module, hashSeed: 7n });
    const stopped = new Error('stopped');
    const abort = () => {
      throw stopped;
    };
    const { exports } = new WebAssembly.Instance(module, { env: { memory, abort }, lock: { lockReleasing: abort } });
    expect(exports[name]).toThrow(stopped);
  });

  it('the preconditions of the core are written at every function that does not take every value', () => {
    const names = Object.keys(attachCore(createPoolMemory(smallSizes, { module }), 1).call);
    expect(functions.map(({ name }) => name).sort()).toEqual(names.sort());
    const taking = functions.filter(({ parameters }) => parameters !== '').map(({ name }) => name);
    expect(taking.sort()).toEqual([...Object.keys(REFUSED), ...Object.keys(ANY)].sort());
  });

  it('the preconditions of the core are written so that the release build leaves them out', () => {
    const outside = globSync('**/*.ts', { cwd: assembly }).filter((file) => {
      const code = readFileSync(join(assembly, file), 'utf8').replace(/^\s*\/\/.*$/gm, '');
      return /\bassert\(/.test(code.replace(/if \(ASSERTIONS\)\s+assert\(/g, ''));
    });
    expect(outside).toEqual([]);
  });
});

describe('the release build of the core', () => {
  it('the release build of the core has no text of an assertion', () => {
    const text = (name: string) => readFileSync(new URL(`../../dist/src/core/${name}`, import.meta.url));
    const utf16 = (what: string) => Buffer.from(what, 'utf16le');
    for (const [what] of Object.values(REFUSED)) {
      expect(text('core-debug.wasm').includes(utf16(what)), what).toBe(true);
      expect(text('core.wasm').includes(utf16(what)), what).toBe(false);
    }
  });
});
