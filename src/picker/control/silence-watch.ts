import type { Endpoint, SlotAssignment } from '../../contract/endpoint.js';
import { endpointAddress } from '../../contract/endpoint.js';
import type { EndpointReading, EndpointTable } from '../../core/endpoint-table.js';
import type { SampleReader } from '../../core/sample-reader.js';
import type { HeardRequest, SilenceTable } from '../../core/silence-table.js';
import type { TrainingSample } from '../../core/training-sample.js';
import {
  type Abandoned,
  type Evidence,
  isAbandoned,
  isOverdue,
  isWorthJudging,
  type Silence,
  silenceOf,
} from '../../pool/silence/judgement.js';
import { PoolTimes } from '../../pool/silence/usual-times.js';
import type { Part } from '../part.js';

/** `in`: silent, but the bound on ejections or the setting keeps the endpoint among the picks. */
export type SilenceNews =
  | { readonly kind: 'out' | 'in'; readonly endpoint: Endpoint; readonly silence: Silence }
  | { readonly kind: 'back'; readonly endpoint: Endpoint; readonly silentMs: number };

export interface SilenceWatchOptions {
  readonly table: Pick<EndpointTable, 'read'>;
  readonly silences: SilenceTable;
  readonly samples: Pick<SampleReader, 'drain'>;
  readonly assignments: () => readonly SlotAssignment[];
  /** Milliseconds of the pool clock. */
  readonly now: () => number;
  readonly report: (news: SilenceNews) => void;
  readonly everyMs?: number | undefined;
}

/** Interval between two looks. */
const EVERY_MS = 250;
/** Answers learned from in one look. */
const SAMPLES_MAX = 1_024;
/** Time for which a change of the KV cache says that the engine works. */
const WORKS_MS = 5_000;
/** Pause between the probes of a silent endpoint: half of the time since it fell silent, within these bounds. */
const PAUSE_MS_MIN = 2_000;
const PAUSE_MS_MAX = 30_000;

/** What the looks at an endpoint with requests in flight have shown. */
interface Track {
  readonly generation: number;
  /** Whether the engine has shown running requests: its signals can be believed when they show none. */
  wasBusy: boolean;
  idleSinceMs: number | undefined;
  kvUsage: number | undefined;
  kvChangedMs: number;
  /** Time of the judgement; undefined = it is not silent. */
  silentSinceMs: number | undefined;
  abandoned: Abandoned | undefined;
  /** Whether the log says that the endpoint is among the picks although it is silent. */
  toldIn: boolean;
}

/**
 * Finds endpoints whose requests in flight get no byte. A silent one gets no new requests, except one probe at a time;
 * it is back with the next byte. Learns how long answers take from the training samples. Costs a look at a few words of
 * each endpoint; requests are looked at only where an endpoint with requests in flight has been quiet for seconds.
 */
export class SilenceWatch implements Part {
  readonly #options: SilenceWatchOptions;
  readonly #times = new PoolTimes();
  readonly #tracks = new Map<number, Track>();
  #timer: NodeJS.Timeout | undefined;
  #silences = 0;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
  }

  /** How often an endpoint was judged silent. */
  get silences(): number {
    return this.#silences;
  }

  start(): void {
    this.#timer = setInterval(() => this.checkAll(), this.#options.everyMs ?? EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  checkAll(): void {
    const { samples, silences, assignments, now } = this.#options;
    samples.drain((sample) => this.#learn(sample), SAMPLES_MAX);
    const nowMs = now();
    const live = assignments().filter(({ endpoint }) => endpoint.draining !== true);
    const quiet = live.filter((assignment) => this.#isQuiet(assignment, nowMs));
    if (quiet.length > 0) {
      const bySlot = Map.groupBy(silences.requests(), ({ slot }) => slot);
      for (const assignment of quiet) this.#judge(assignment, bySlot.get(assignment.slot) ?? [], nowMs);
    }
    if (this.#tracks.size > live.length) this.#forget(live);
  }

  #learn(sample: TrainingSample): void {
    this.#times.note(sample);
    const { slot, slotGeneration, timeMs } = sample;
    const track = this.#tracks.get(slot);
    const times = this.#times.of(slot, slotGeneration);
    if (track?.generation !== slotGeneration || times === undefined || !isAbandoned(sample, times)) return;
    const isFirst = track.abandoned === undefined || track.abandoned.sinceMs <= this.#options.silences.heardMs(slot);
    track.abandoned = isFirst
      ? { count: 1, sinceMs: timeMs }
      : { ...track.abandoned!, count: track.abandoned!.count + 1 };
  }

  /** Follows the signals of an endpoint. @returns whether it has to be judged */
  #isQuiet(assignment: SlotAssignment, nowMs: number): boolean {
    const { silences, table } = this.#options;
    const { slot } = assignment;
    const track = this.#trackOf(assignment);
    if (track.silentSinceMs !== undefined && silences.heardMs(slot) > track.silentSinceMs) {
      this.#takeBack(assignment, track, nowMs);
    }
    // Who drains is silent no more.
    if (!silences.isSilent(slot)) track.silentSinceMs = undefined;
    const isSilent = track.silentSinceMs !== undefined;
    if (track.abandoned !== undefined && silences.heardMs(slot) >= track.abandoned.sinceMs) track.abandoned = undefined;
    if (silences.inflight(slot) === 0 && !isSilent && track.abandoned === undefined) {
      track.idleSinceMs = undefined;
      return false;
    }
    follow(track, table.read(slot), nowMs);
    return isSilent || isWorthJudging(nowMs - silences.heardMs(slot));
  }

  #judge(assignment: SlotAssignment, requests: readonly HeardRequest[], nowMs: number): void {
    const track = this.#trackOf(assignment);
    const evidence = this.#evidenceOf(assignment, track, requests, nowMs);
    if (evidence === undefined) return;
    if (track.silentSinceMs !== undefined) {
      this.#followSilent(assignment, track, evidence, nowMs);
      return;
    }
    const silence = silenceOf(evidence, nowMs);
    if (silence !== undefined) this.#silence(assignment, track, silence, nowMs);
  }

  #evidenceOf(
    { slot, generation }: SlotAssignment,
    track: Track,
    requests: readonly HeardRequest[],
    nowMs: number,
  ): Evidence | undefined {
    const times = this.#times.of(slot, generation);
    if (times === undefined) return undefined;
    return {
      requests,
      heardMs: this.#options.silences.heardMs(slot),
      idleSinceMs: track.idleSinceMs,
      works: track.kvUsage === undefined ? undefined : nowMs - track.kvChangedMs < WORKS_MS,
      times,
      abandoned: track.abandoned,
    };
  }

  #silence({ slot, generation, endpoint }: SlotAssignment, track: Track, silence: Silence, nowMs: number): void {
    const written = this.#options.silences.silence(slot, generation, nowMs);
    if (written === 'busy') return;
    track.silentSinceMs = nowMs;
    track.toldIn = written === 'in';
    this.#silences++;
    this.#options.report({ kind: written, endpoint, silence });
  }

  /**
   * Follows a silent endpoint without a byte: ejects it as soon as the bound on ejected endpoints allows, and sends it
   * one probe at a time.
   */
  #followSilent({ slot, generation, endpoint }: SlotAssignment, track: Track, evidence: Evidence, nowMs: number): void {
    const { silences, report } = this.#options;
    if (!silences.isOut(slot)) {
      const written = silences.silence(slot, generation, nowMs);
      const silence = written === 'out' && track.toldIn ? silenceOf(evidence, nowMs) : undefined;
      if (silence === undefined) return;
      track.toldIn = false;
      report({ kind: 'out', endpoint, silence });
      return;
    }
    if (!silences.isProbed(slot)) return;
    const probe = evidence.requests.find(({ isProbe }) => isProbe);
    const over = probe !== undefined && isOverdue(probe, evidence, nowMs) ? probe.ticket : undefined;
    const pauseMs = Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, (nowMs - track.silentSinceMs!) / 2));
    silences.putOffProbe(slot, generation, over, nowMs + pauseMs);
  }

  #takeBack({ slot, generation, endpoint }: SlotAssignment, track: Track, nowMs: number): void {
    const { silences, report } = this.#options;
    if (!silences.takeBack(slot, generation)) return;
    const silentMs = nowMs - track.silentSinceMs!;
    track.silentSinceMs = undefined;
    track.idleSinceMs = undefined;
    report({ kind: 'back', endpoint, silentMs });
  }

  #trackOf({ slot, generation }: SlotAssignment): Track {
    const known = this.#tracks.get(slot);
    if (known?.generation === generation) return known;
    const fresh: Track = {
      generation,
      wasBusy: false,
      idleSinceMs: undefined,
      kvUsage: undefined,
      kvChangedMs: Number.NEGATIVE_INFINITY,
      silentSinceMs: undefined,
      abandoned: undefined,
      toldIn: false,
    };
    this.#tracks.set(slot, fresh);
    return fresh;
  }

  #forget(live: readonly SlotAssignment[]): void {
    const slots = new Set(live.map(({ slot }) => slot));
    for (const slot of this.#tracks.keys()) if (!slots.has(slot)) this.#tracks.delete(slot);
  }
}

/** Takes over the signals of an endpoint. Unknown ones show neither work nor idleness. */
function follow(track: Track, { running, waiting, kvUsage }: EndpointReading, nowMs: number): void {
  if (running !== undefined && running > 0) track.wasBusy = true;
  const isIdle = track.wasBusy && running === 0 && waiting === 0;
  if (!isIdle) track.idleSinceMs = undefined;
  else track.idleSinceMs ??= nowMs;
  if (kvUsage !== undefined && track.kvUsage !== undefined && kvUsage !== track.kvUsage) track.kvChangedMs = nowMs;
  track.kvUsage = kvUsage;
}

/** The part of the log that silences are written to. */
export interface SilenceLog {
  warn(fields: object, text: string): void;
  info(fields: object, text: string): void;
}

/** Writes a line when an endpoint falls silent, and when it is back. */
export function silenceLog(log: SilenceLog): (news: SilenceNews) => void {
  return (news) => {
    const { id: endpoint } = news.endpoint;
    if (news.kind === 'back') {
      const silentSeconds = seconds(news.silentMs);
      log.info({ endpoint, silentSeconds }, 'endpoint answers again: it gets new requests');
      return;
    }
    const { overdue, quietMs, allowedMs, idle } = news.silence;
    const facts = {
      endpoint,
      address: endpointAddress(news.endpoint),
      requestsOverdue: overdue,
      quietSeconds: seconds(quietMs),
      allowedSeconds: seconds(allowedMs),
      engineSaysIdle: idle,
    };
    log.warn(facts, `endpoint silent: its requests in flight get no byte; ${news.kind === 'out' ? OUT : IN}`);
  };
}

const OUT = 'no new ones until a byte comes or a probe succeeds. If it does not recover, restart its model server';
const IN =
  'it still gets new ones, because half of the pool is out already or ejection is off. Restart its model server';

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
