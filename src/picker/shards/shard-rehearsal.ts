import { createStreamOpener } from '../../ingress/opener.js';
import { rehearsal } from '../../ingress/rehearsal/rehearsal.js';
import { createLogger } from '../../operations/log.js';
import { errorMessage } from '../../runtime/error-message.js';
import { HeldFlag } from '../../runtime/held-flags.js';
import type { PluginDefinition } from '../../scheduling/plugin.js';
import type { PoolStart, RehearsalPool, ShardStart } from '../messages.js';
import { type Played, playWhenQuiet, type QuietPlay, type Traffic } from './play-when-quiet.js';
import { PoolStack } from './pool-stack.js';

/** Pause behind a slice, in which sockets are read and V8's compilers get the core. */
const PAUSE_MS = 1;
const QUIET_MS = 100;
/** Time after which an idle rehearsal is given up, since the traffic compiles the code. */
const GIVE_UP_MS = 10_000;

/**
 * V8's second compiler leaves its finished compilations to a background thread, which comes to free them when 17 MB
 * have gathered in a rehearsal, of which the allocator gives little back. Freed by the shard's own thread they are 6 MB
 * at most, for the same times of the first bursts. Undefined where V8 may not know the flag: it would complain.
 */
const FREES_COMPILATIONS = /^v2[45]\./.test(process.version)
  ? new HeldFlag('--no-maglev-destroy-on-background', '--maglev-destroy-on-background')
  : undefined;

/** Plays a rehearsal before the shard listens: readiness waits for it. */
export async function rehearseBeforeStart(
  start: ShardStart,
  pool: RehearsalPool,
  definitions: ReadonlyMap<string, PluginDefinition>,
): Promise<void> {
  const { timeMs } = pool;
  await rehearse(start, pool, definitions, '--warm-up', {
    traffic: () => 0,
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    ...{ now: () => performance.now(), timeMs, quietMs: 0, giveUpMs: timeMs },
  });
}

/** Plays a rehearsal while the shard has no traffic. */
export async function rehearseWhenIdle(
  start: ShardStart,
  pool: RehearsalPool,
  definitions: ReadonlyMap<string, PluginDefinition>,
  traffic: () => Traffic,
): Promise<void> {
  await rehearse(start, pool, definitions, '--idle-warm-up', {
    traffic,
    pause: (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(PAUSE_MS, ms)).unref()),
    ...{ now: () => performance.now(), timeMs: pool.timeMs, quietMs: QUIET_MS, giveUpMs: GIVE_UP_MS },
  });
}

/**
 * Compiles the code of a request on memory that is thrown away: nothing of it is seen in the index, the charges, the
 * metrics, the logs or what is learned. Hook plugins would see the rehearsal, so with them there is none.
 */
async function rehearse(
  start: ShardStart,
  pool: RehearsalPool,
  definitions: ReadonlyMap<string, PluginDefinition>,
  flag: string,
  play: QuietPlay,
): Promise<void> {
  const { settings } = start.pools[0];
  const log = createLogger(settings.observe.log);
  if (settings.restart.plugins.configured.length > 0) {
    log.info(`hook plugins would see a rehearsal, so there is none: the first requests are slower (${flag})`);
    return;
  }
  const stack = rehearsedStack(start, pool, definitions);
  const release = FREES_COMPILATIONS?.hold();
  try {
    const open = createStreamOpener(stack.rehearsalServices());
    const { pieces, usedMs }: Played = await playWhenQuiet(() => rehearsal(open), play);
    log.info({ pieces, ms: Math.round(usedMs) }, `a shard has compiled its code (${flag})`);
  } catch (error) {
    log.warn({ error: errorMessage(error) }, `a rehearsal failed, the first requests are slower (${flag})`);
  } finally {
    release?.();
    await stack.close();
  }
}

/** A stack like that of the own pool, whose decisions, log lines and messages reach nobody. */
function rehearsedStack(
  { thread, pools: [own] }: ShardStart,
  { pool: memory, assignments }: RehearsalPool,
  definitions: ReadonlyMap<string, PluginDefinition>,
): PoolStack {
  const { decide, observe, reloadable } = own.settings;
  const settings = {
    ...own.settings,
    decide: { ...decide, models: { ...decide.models, matchRequired: false } },
    observe: { ...observe, sampler: undefined },
    reloadable: { ...reloadable, flowControl: undefined },
  };
  const start: PoolStart = { ...own, memory, settings, snapshot: { ...own.snapshot, assignments } };
  const log = createLogger(observe.log, { write: () => undefined });
  return new PoolStack({ start, thread, definitions, log, send: () => undefined });
}
