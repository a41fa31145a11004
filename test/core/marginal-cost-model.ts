import type { Coefficients, HardwareCoefficients } from '../../dist/src/core/index.js';

/** What the formula looks at of one endpoint. */
export interface CostInput {
  readonly cachedTokens: number;
  readonly inflight: number;
  readonly prefillTokens: number;
  readonly promptTokens: number;
  /** Uncached tokens per millisecond, decayed to now. */
  readonly prefillRate: number;
  /** The largest rate that the endpoint has been sent. */
  readonly prefillPeak: number;
  readonly waiting: number | undefined;
  readonly running: number | undefined;
  readonly kvUsage: number | undefined;
  /** Tokens of the engine's KV cache, a multiple of 16; 0 = unknown. */
  readonly kvTokens: number;
  /** Tokens of the blocks that running prompts use. */
  readonly activeTokens: number;
  /** The same that the prompt begins with. */
  readonly sharedTokens: number;
  readonly slotsSeen: number;
  readonly speed: number;
  readonly reliability: number;
  /** Coefficients of its hardware class; undefined = those of the pool. */
  readonly own?: HardwareCoefficients | undefined;
}

const mean = (values: readonly number[]) =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
const isKnown = (value: number | undefined): value is number => value !== undefined;

/** The marginal cost of a prompt on each endpoint, in plain TypeScript, as the head of marginal-cost.ts writes it. */
export function marginalCosts(given: Coefficients, prompt: number, endpoints: readonly CostInput[]): number[] {
  const meanWaiting = mean(endpoints.map((e) => e.waiting).filter(isKnown));
  const meanUsage = mean(endpoints.map((e) => e.kvUsage).filter(isKnown));
  const exponent = 1 + Math.min(1, Math.max(0, (meanUsage - 0.7) / 0.2));
  const scarcity = 1 / (1 - Math.min(0.8, meanUsage)) ** exponent + given.evictionPrice - 1;
  const peak = Math.max(...endpoints.map((e) => e.prefillPeak));
  return endpoints.map((e) => {
    const share = peak === 0 ? 0 : e.prefillRate / peak;
    const busy = Math.min(0.5, share) + share / 1000;
    const fresh = Math.max(0, prompt - e.reliability * Math.min(prompt, e.cachedTokens));
    const waiting = e.waiting ?? meanWaiting;
    const lacking = lackingMemory(given, prompt, fresh, e, waiting, e.kvUsage ?? meanUsage);
    const missed = (given.prefillMsPerKiloToken * (scarcity - 1) * fresh) / 1000;
    return one(given, fresh, prompt, e, waiting, missed, given.missPrice / (1 - busy), lacking);
  });
}

/** Turns of output that are lost because the KV cache of an endpoint is full. */
function lackingMemory(
  given: Coefficients,
  prompt: number,
  fresh: number,
  e: CostInput,
  waiting: number,
  usage: number,
) {
  const charged = e.activeTokens + (e.inflight * given.outputTokens) / 2;
  const held = Math.max(usage * e.kvTokens + Math.min(0.02 * e.kvTokens, e.prefillTokens), charged);
  const fill = e.kvTokens === 0 ? usage : (held + Math.max(0, prompt - e.sharedTokens)) / e.kvTokens;
  const full = Math.min(1, Math.max(0, (usage - 0.85) / 0.1));
  const taken = e.kvTokens === 0 ? 1 / Math.max(1, e.inflight) : (fresh + given.outputTokens) / e.kvTokens;
  return 6 * Math.max(0, fill - 0.7) ** 2 + ((1 + waiting) * taken * full) / 2;
}

/** @param scarce ms that a miss costs the pool beside its own prefill, @param m factor on both */
function one(
  pool: Coefficients,
  fresh: number,
  prompt: number,
  e: CostInput,
  waiting: number,
  scarce: number,
  m: number,
  lacking: number,
) {
  const given = { ...pool, ...e.own };
  const { baseMs, prefillMsPerKiloToken: c, stepMs, growthMs: g } = given;
  const { outputTokens: output, firstOutputTargetMs: target, perTokenTargetMs: perToken } = given;
  const { speed: s, inflight: n } = e;
  const u = fresh / 1000;
  const q = e.prefillTokens / 1000;
  const tokens = (e.promptTokens + n * (output / 2 + 130)) / 1e5;
  const added = (prompt + output / 2 + 130) / 1e5;
  const step = s * (stepMs + g * (tokens + added));
  const own = (s * (baseMs + 2 * c * q + given.waitingMs * waiting) + (s * c * u + scarce) * m) / target;
  const arrivals = n / Math.max(1, output * step);
  const followers = (2 * arrivals * s * c * (q + u) * s * c * u) / target;
  const stall = (s * n * c * u) / (output * perToken);
  const decode = (step + s * n * g * added) / perToken;
  const slots = Math.max(given.slots, e.slotsSeen);
  const turns = Math.max(0, n + 1 - slots) / slots + lacking;
  return own + followers + stall + decode + (turns * output * step) / target;
}
