import { runInNewContext } from 'node:vm';
import type { Logger } from '../operations/log.js';
import type { Picker } from '../picker/picker.js';
import { startShardThreads } from '../picker/shards/shard-threads.js';
import { errorMessage } from '../runtime/error-message.js';
import { checkStart } from './address-space.js';
import { parseServeFlags } from './flags.js';

/** Time without a request after which the start ends: what it does then takes the cores from a first request. */
const QUIET_MS = 1_000;
/** Tries to keep the compiled code, one each `QUIET_MS`: flags of V8 are held for 10 s at most. */
const KEEP_TRIES = 15;
/** Bound on the seconds with requests that the end of the start waits for one without: ten minutes. */
const BUSY_LOOKS_MAX = 600;

/**
 * `pointsman serve`: run a picker until SIGTERM or SIGINT.
 * @param keep keeps the code that was compiled, before the memory of the start is freed; false = not at present
 */
export async function runServe(argv: readonly string[], keep: () => boolean = () => true): Promise<void> {
  const flags = parseServeFlags(argv, process.env);
  if ('help' in flags) {
    process.stdout.write(flags.help);
    return;
  }
  if (flags.printEffectiveConfig) {
    process.stdout.write(await (await import('./create-picker.js')).effectiveConfiguration(flags));
    return;
  }
  process.on('uncaughtException', controlThreadFailed);
  // Read when the core is loaded (core/memory.ts).
  if (flags.debugCore) process.env.POINTSMAN_CORE = 'debug';
  await checkStart(flags);
  // The shard threads load by themselves while this thread loads the rest and reads the configuration.
  const shardThreads = startShardThreads(flags.shards);
  (await import('../config/interpreted-schemas.js')).interpretSchemas();
  const { createPicker } = await import('./create-picker.js');
  const { picker, log } = await createPicker(flags, failed, shardThreads);
  if (flags.debugCore) log.warn('the core checks itself at every release of a lock: decisions are slower');
  stopOnSignal(picker, flags.drainTimeout, log);
  process.on('SIGHUP', () => void picker.reload());
  // Without a listener Node.js opens an inspector on this signal, through which code can be run.
  process.on('SIGUSR1', () => log.warn('SIGUSR1 has no effect: the inspector is opened by --inspect of Node.js only'));
  const ports = await picker.start();
  log.info(ports, 'pointsman is serving');
  endStart(keep, () => picker.requests, KEEP_TRIES);
}

/**
 * Keeps the compiled code, when that is possible, and then frees the memory of the start, both in a time without
 * requests, or when there has been none for ten minutes.
 * @param requests that have come so far
 * @param tries 1 or more, one each `QUIET_MS` without a request; the memory is freed behind the last one in any case
 * @param looks with requests that are still waited for
 */
export function endStart(keep: () => boolean, requests: () => number, tries: number, looks = BUSY_LOOKS_MAX): void {
  const before = requests();
  const look = () => {
    if (looks > 0 && requests() !== before) endStart(keep, requests, tries, looks - 1);
    else if (keep() || tries === 1) collectStartGarbage();
    else endStart(keep, requests, tries - 1, looks);
  };
  setTimeout(look, QUIET_MS).unref();
}

/** Ends the process when the picker cannot go on; restarting it is left to the supervisor (kubelet, systemd). */
function failed(error: Error): void {
  process.stderr.write(`pointsman: ${error.message}\n`);
  process.exit(1);
}

/**
 * Ends the process when the control thread throws, or rejects what is not awaited: what it keeps may be half changed.
 * The shards end with it, and the supervisor starts it again.
 */
function controlThreadFailed(error: unknown): void {
  failed(new Error(`the control thread has failed: ${error instanceof Error ? error.stack : String(error)}`));
}

/**
 * SIGTERM and SIGINT: not ready at once, lame duck, streams finish, exit 0. A second signal breaks the streams off,
 * exit 1.
 */
function stopOnSignal(picker: Picker, drainMs: number, log: Logger): void {
  let signals = 0;
  const stop = (signal: string) => {
    signals++;
    if (signals > 2) process.exit(1);
    const timeMs = signals === 1 ? drainMs : 0;
    log.info(
      { signal, drainMs: timeMs },
      'draining: not ready any more, new requests are served for a while, open streams finish',
    );
    picker.stop(timeMs).then(
      () => process.exit(signals === 1 ? 0 : 1),
      (error: unknown) => {
        log.error({ error: errorMessage(error) }, 'the drain failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

/** A collection that gives the memory of free pages back, also that of code that has not run since. */
type Collector = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Returns the memory that the start of this thread has left behind: modules that were parsed, the configuration's text
 * and checks. V8 keeps it until its heap grows again, which on an idle control thread does not happen. Measured: 18 MB,
 * in 50 ms in which the thread does nothing else and V8's threads help it: 80 ms of CPU, and 120 ms beside requests on
 * two cores, which wait for them. Not for shards: their optimised code would be dropped as well.
 */
export function collectStartGarbage(): void {
  // Half a dozen modules that the start itself does without.
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collector;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
