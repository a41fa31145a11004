import type { SessionCounts } from '../../../src/core/session-ledger.js';
import type { Measures } from '../../../src/core/training-sample.js';
import { metTargets, type WantedTimes } from '../../../src/scheduling/wanted-times.js';
import { type LoadSample, SimulatedEndpoint } from './endpoint.js';
import type { EngineListener, EngineRequest, Sequence } from './engine.js';
import { EventQueue } from './events.js';
import type { FleetSettings, Incident } from './fleet-settings.js';
import { KvEventFeed } from './kv-event-feed.js';
import { LEARNER_TICK_MS } from './learner.js';
import type { RequestOutcome, RunOutcome } from './outcome.js';
import { SimulatedPicker } from './picker.js';
import type { PickerConfiguration } from './picker-configuration.js';
import { isWait, type PickOutcome, type SimulatedCharge, type Wait } from './picks.js';
import { type Play, Plays } from './plays.js';
import { RandomStream } from './random-stream.js';
import { meanOutputTokens, requestsOf, type Turn, type Workload } from './workload.js';

/** A request under way: what the client sent, its endpoint, and its charge. */
interface Flight extends EngineRequest {
  readonly turn: Turn;
  readonly play: Play;
  readonly session: number;
  readonly priority: number;
  readonly tenant: string;
  readonly targets: WantedTimes | undefined;
  readonly endpoints: readonly number[] | undefined;
  readonly anonymous: boolean;
  readonly last: boolean;
  readonly sentMs: number;
  attempts: number;
  endpoint: number;
  picker: number;
  charge: SimulatedCharge | undefined;
  decidedMs: number;
  /** Prompt tokens that the picker believed to be cached. */
  expected: number;
  /** Charges at peers, by their number. */
  readonly mirrors: Map<number, SimulatedCharge>;
  sequence: Sequence<Flight> | undefined;
  firstTokenMs: number;
  lastTokenMs: number;
  /** The wait in the picker's queues that is under way, and when it began. */
  wait: Wait | undefined;
  waitsSinceMs: number;
  heldMs: number;
  over: boolean;
}

/** Measurements of one answer. */
interface SampleTimes {
  readonly firstOutputMs: number;
  readonly perTokenMs: number | undefined;
  readonly durationMs: number;
}

/** Signals of an endpoint that lies. */
const IDLE: LoadSample = { timeMs: 0, waiting: 0, running: 0, kvUsage: 0 };

/** Signals that are older than this are unknown: the picker's `--metrics-staleness-threshold`. */
const STALE_MS = 2_000;

/**
 * One run of a workload over a fleet behind pickers that decide by `configuration`. Deterministic: equal arguments give
 * equal outcomes.
 * @throws Error when the configuration cannot be simulated
 */
export function simulate(
  workload: Workload,
  configuration: PickerConfiguration,
  fleet: FleetSettings,
  seed: number,
): RunOutcome {
  return new Simulation(workload, configuration, fleet, seed).run();
}

class Simulation implements EngineListener<Flight> {
  readonly #workload: Workload;
  readonly #fleet: FleetSettings;
  readonly #events = new EventQueue();
  readonly #endpoints: readonly SimulatedEndpoint<Flight>[];
  readonly #feeds: readonly (KvEventFeed | undefined)[];
  readonly #pickers: readonly SimulatedPicker[];
  readonly #random: RandomStream;
  readonly #outcomes: RequestOutcome[] = [];
  readonly #sampleRandom: RandomStream;
  readonly #lastGoodScrape: number[][];
  #latestTimes: SampleTimes | undefined;
  /** Requests after which the run is over; infinite with clients. */
  readonly #expected: number;
  readonly #plays: Plays;
  #stopped = false;
  #nextPicker = 0;
  #placed = 0;
  readonly #placedSessions = new Set<number>();
  #decisions = 0;

  constructor(workload: Workload, configuration: PickerConfiguration, fleet: FleetSettings, seed: number) {
    this.#workload = workload;
    this.#fleet = fleet;
    this.#expected = workload.clients === undefined ? requestsOf(workload) : Number.POSITIVE_INFINITY;
    this.#plays = new Plays(workload, fleet, this.#events, seed, (play) => this.#send(play));
    this.#random = new RandomStream(seed, 'fleet');
    const { endpoints, kvEvents, pickers } = fleet;
    const { replicas } = pickers;
    const outputTokens = meanOutputTokens(workload);
    this.#pickers = Array.from(
      { length: replicas },
      (_, replica) =>
        new SimulatedPicker(
          configuration,
          endpoints,
          workload.blockTokens,
          outputTokens,
          kvEvents,
          seed * 1_000 + replica,
          {
            clock: this.#events,
            share: pickers.sharing === 'none' ? 1 / replicas : 1,
            place: pickers.sharing === 'all' && replicas > 1 ? { place: replica, replicas } : undefined,
            aheadMs: replicas > 1 ? (pickers.clockSkewMs * replica) / (replicas - 1) : 0,
          },
        ),
    );
    this.#endpoints = endpoints.map((settings, slot) => {
      const random = new RandomStream(seed, `endpoint ${slot}`);
      const stepped = () => this.#feeds[slot]?.flush();
      return new SimulatedEndpoint<Flight>(settings, fleet, workload.contents, this.#events, random, this, stepped);
    });
    this.#feeds = this.#endpoints.map(({ engine }, slot) => {
      if (kvEvents === undefined) return undefined;
      const random = new RandomStream(seed, `events ${slot}`);
      const feed = new KvEventFeed(slot, kvEvents, this.#pickers, this.#events, random);
      engine.kv.listen(feed);
      return feed;
    });
    this.#sampleRandom = new RandomStream(seed, 'labels');
    this.#lastGoodScrape = this.#pickers.map(() => endpoints.map(() => 0));
  }

  run(): RunOutcome {
    for (const [slot, { joinMs, leaveMs }] of this.#fleet.endpoints.entries()) {
      this.#events.at(joinMs, () => this.#join(slot));
      if (Number.isFinite(leaveMs)) this.#events.at(leaveMs, () => this.#leave(slot));
    }
    for (const incident of this.#fleet.incidents) this.#events.at(incident.atMs, () => this.#happen(incident));
    this.#plays.begin();
    const { endMs } = this.#workload;
    if (endMs !== undefined) {
      this.#events.at(endMs, () => {
        this.#stopped = true;
      });
    }
    if (this.#pickers.some(({ learner }) => learner !== undefined)) this.#tickLearners();
    while (!this.#stopped && this.#outcomes.length < this.#expected && this.#events.next());
    return {
      requests: this.#outcomes,
      preemptions: this.#endpoints.reduce((sum, { engine }) => sum + engine.preemptions, 0),
      steps: this.#endpoints.reduce((sum, { engine }) => sum + engine.steps, 0),
      busyMs: this.#endpoints.map(({ busyMs }) => busyMs),
      endMs: this.#events.nowMs,
      clients: this.#plays.clients,
      decisions: this.#decisions,
      learning: this.#pickers[0]!.learner?.samples,
      placed: { turns: this.#placed, sessions: this.#placedSessions.size },
      sessions: sumOf(this.#pickers.map(({ sessions }) => sessions)),
      transitions: this.#pickers[0]!.learner?.transitions,
    };
  }

  /** Passes the turns of sessions at one picker to the others, after the delay. */
  #tellTurns(replica: number): void {
    this.#pickers[replica]!.takeTurns((turn) => {
      for (const [peer, picker] of this.#pickers.entries()) {
        if (peer === replica) continue;
        const hear = () => picker.hearTurn(turn, replica, this.#events.nowMs);
        this.#events.after(this.#fleet.pickers.sharingDelayMs, hear);
      }
    });
  }

  #tickLearners(): void {
    for (const { learner } of this.#pickers) learner?.tick(this.#events.nowMs);
    this.#events.after(LEARNER_TICK_MS, () => this.#tickLearners());
  }

  // Events of endpoints.

  #join(slot: number): void {
    for (const picker of this.#pickers) picker.setState(slot, 'live');
    const { scrapeMs } = this.#fleet.metrics;
    for (const replica of this.#pickers.keys()) {
      this.#events.after(this.#random.uniform() * scrapeMs, () => this.#scrape(replica, slot));
    }
  }

  #leave(slot: number): void {
    for (const picker of this.#pickers) picker.setState(slot, 'draining');
  }

  #happen(incident: Incident): void {
    const endpoint = this.#endpoints[incident.endpoint]!;
    if (incident.kind === 'slow') {
      endpoint.engine.speed *= incident.factor;
      this.#events.after(incident.forMs, () => {
        endpoint.engine.speed /= incident.factor;
      });
      return;
    }
    for (const { request } of endpoint.crash()) this.#failed(request);
    this.#feeds[incident.endpoint]?.clear();
    this.#events.after(incident.forMs, () => endpoint.restart());
  }

  #scrape(replica: number, slot: number): void {
    const { scrapeMs, jitter, failures } = this.#fleet.metrics;
    const endpoint = this.#endpoints[slot]!;
    const now = this.#events.nowMs;
    const good = endpoint.up && !(failures > 0 && this.#random.uniform() < failures);
    const last = this.#lastGoodScrape[replica]!;
    if (good) {
      this.#pickers[replica]!.publish(slot, endpoint.settings.lies ? IDLE : endpoint.shown(), now);
      last[slot] = now;
    } else if (now - last[slot]! >= Math.max(STALE_MS, 2 * scrapeMs)) this.#pickers[replica]!.markStale(slot);
    const until = scrapeMs * (1 + jitter * (2 * this.#random.uniform() - 1));
    this.#events.after(until, () => this.#scrape(replica, slot));
  }

  // The way of a request.

  #send(play: Play): void {
    const { session, turn } = play;
    const flight: Flight = {
      promptTokens: turn.promptTokens,
      outputTokens: turn.outputTokens,
      chain: turn.chain,
      turn,
      play,
      session: play.number,
      priority: session.priority ?? 0,
      tenant: session.tenant ?? '',
      targets: this.#fleet.client.targets,
      endpoints: session.endpoints,
      anonymous: session.anonymous ?? false,
      last: play.position === session.turns.length - 1,
      sentMs: this.#events.nowMs,
      attempts: 0,
      endpoint: -1,
      picker: -1,
      charge: undefined,
      decidedMs: 0,
      expected: 0,
      mirrors: new Map(),
      sequence: undefined,
      firstTokenMs: -1,
      lastTokenMs: 0,
      wait: undefined,
      waitsSinceMs: 0,
      heldMs: 0,
      over: false,
    };
    const { timeoutMs } = this.#fleet.client;
    if (timeoutMs > 0) this.#events.after(timeoutMs, () => this.#hangUp(flight));
    this.#dispatch(flight);
  }

  #dispatch(flight: Flight): void {
    const replica = this.#nextPicker;
    this.#nextPicker = (replica + 1) % this.#pickers.length;
    flight.attempts++;
    this.#decisions++;
    const picked = (outcome: PickOutcome | Wait) => this.#picked(flight, replica, outcome);
    picked(this.#pickers[replica]!.pick(flight, this.#events.nowMs, picked));
  }

  #picked(flight: Flight, replica: number, outcome: PickOutcome | Wait): void {
    if (flight.wait !== undefined) flight.heldMs += this.#events.nowMs - flight.waitsSinceMs;
    flight.wait = undefined;
    if (outcome === 'rejected') this.#end(flight, 'rejected');
    else if (outcome === 'unavailable') this.#retry(flight);
    else if (isWait(outcome)) {
      flight.wait = outcome;
      flight.waitsSinceMs = this.#events.nowMs;
      this.#tellTurns(replica);
    } else this.#place(flight, replica, outcome);
  }

  #place(flight: Flight, replica: number, picked: SimulatedCharge): void {
    if (flight.attempts === 1) this.#placed++;
    this.#placedSessions.add(flight.session);
    flight.picker = replica;
    flight.charge = picked;
    flight.expected = picked.matchedTokens;
    flight.decidedMs = this.#events.nowMs;
    flight.endpoint = picked.slot;
    this.#tellTurns(replica);
    this.#tellSisters(flight, picked);
    this.#events.after(this.#fleet.pathMs, () => this.#arrive(flight));
  }

  #tellSisters(flight: Flight, charge: SimulatedCharge): void {
    const { sharing, sharingDelayMs } = this.#fleet.pickers;
    if (sharing === 'none') return;
    const attempt = flight.attempts;
    for (const [peer, picker] of this.#pickers.entries()) {
      if (peer === flight.picker) continue;
      this.#events.after(sharingDelayMs, () => {
        if (flight.over || flight.attempts !== attempt) return;
        flight.mirrors.set(peer, picker.mirror(flight, charge, sharing === 'all', this.#events.nowMs));
      });
    }
  }

  #arrive(flight: Flight): void {
    if (flight.over) return;
    const endpoint = this.#endpoints[flight.endpoint]!;
    if (!endpoint.up) {
      this.#failed(flight);
      return;
    }
    flight.sequence = endpoint.submit(flight);
    // Longer than the whole KV cache: no endpoint of this kind can serve it.
    if (flight.sequence === undefined) this.#end(flight, 'failed');
  }

  token({ request: flight, generated }: Sequence<Flight>): void {
    const { blockTokens } = this.#workload;
    if (generated === 1) {
      // A request that was begun anew after a crash keeps the first token that its client saw.
      if (flight.firstTokenMs < 0) flight.firstTokenMs = this.#events.nowMs;
      this.#pickers[flight.picker]!.firstToken(flight.charge!, this.#events.nowMs);
      this.#toMirrors(flight, (picker, charge) => picker.firstToken(charge, this.#events.nowMs));
    } else {
      this.#pickers[flight.picker]!.stepped(flight.charge!, this.#events.nowMs - flight.lastTokenMs);
      if (generated % blockTokens === 0) this.#pickers[flight.picker]!.grow(flight.charge!, generated);
    }
    flight.lastTokenMs = this.#events.nowMs;
  }

  finished({ request: flight }: Sequence<Flight>): void {
    this.#pickers[flight.picker]!.outcome(flight.charge!, false, this.#events.nowMs);
    this.#noteSample(flight);
    this.#pickers[flight.picker]!.complete(flight.charge!, flight.outputTokens, this.#events.nowMs);
    this.#end(flight, 'served');
  }

  /** Tells the learner what was measured, unless the sample is lost. */
  #noteSample(flight: Flight): void {
    const { lost } = this.#fleet.samples;
    if (lost > 0 && this.#sampleRandom.uniform() < lost) return;
    const now = this.#events.nowMs;
    const { promptTokens, outputTokens, firstTokenMs, decidedMs } = flight;
    const cachedTokens = Math.max(0, flight.sequence!.cachedTokens);
    const times = this.#withFaults({
      firstOutputMs: firstTokenMs - decidedMs,
      perTokenMs: outputTokens > 1 ? (now - firstTokenMs) / (outputTokens - 1) : undefined,
      durationMs: now - decidedMs,
    });
    const measures: Measures = { outcome: 'completed', ...times, outputTokens, promptTokens, cachedTokens };
    const targetsMet = flight.targets === undefined ? undefined : metTargets(flight.targets, measures);
    this.#pickers[flight.picker]!.noteSample(flight.charge!, { ...measures, targetsMet });
  }

  /** Gives a share of the samples the times of the request before, and distorts others by up to ten times. */
  #withFaults(own: SampleTimes): SampleTimes {
    const { distorted, shuffled } = this.#fleet.samples;
    const before = this.#latestTimes ?? own;
    this.#latestTimes = own;
    if (shuffled > 0 && this.#sampleRandom.uniform() < shuffled) return before;
    if (!(distorted > 0 && this.#sampleRandom.uniform() < distorted)) return own;
    const factor = () => 10 ** (2 * this.#sampleRandom.uniform() - 1);
    const firstOutputMs = own.firstOutputMs * factor();
    return {
      ...own,
      firstOutputMs,
      perTokenMs: own.perTokenMs === undefined ? undefined : own.perTokenMs * factor(),
    };
  }

  /** Reports to the picker that the endpoint is down, releases the charge and tries again. */
  #failed(flight: Flight): void {
    if (flight.charge !== undefined) {
      this.#pickers[flight.picker]!.outcome(flight.charge, true, this.#events.nowMs);
    }
    this.#release(flight);
    flight.sequence = undefined;
    this.#retry(flight);
  }

  #retry(flight: Flight): void {
    const { retries, backoffMs } = this.#fleet.client;
    if (flight.attempts > retries) {
      this.#end(flight, 'failed');
      return;
    }
    this.#events.after(backoffMs * 2 ** (flight.attempts - 1), () => {
      if (!flight.over) this.#dispatch(flight);
    });
  }

  #hangUp(flight: Flight): void {
    if (flight.over) return;
    if (flight.sequence !== undefined) this.#endpoints[flight.endpoint]!.engine.abort(flight.sequence);
    if (flight.wait !== undefined) flight.heldMs += this.#events.nowMs - flight.waitsSinceMs;
    flight.wait?.leave();
    flight.wait = undefined;
    this.#end(flight, 'timeout');
  }

  #end(flight: Flight, status: RequestOutcome['status']): void {
    flight.over = true;
    this.#release(flight);
    const now = this.#events.nowMs;
    const { outputTokens } = flight.turn;
    const served = status === 'served';
    this.#outcomes.push({
      part: flight.play.session.part,
      session: flight.session,
      arrivalMs: flight.sentMs,
      status,
      endpoint: served ? flight.endpoint : -1,
      promptTokens: flight.promptTokens,
      outputTokens,
      cachedTokens: Math.max(0, flight.sequence?.cachedTokens ?? 0),
      loadedTokens: flight.sequence?.loadedTokens ?? 0,
      expectedTokens: Math.min(flight.expected, flight.promptTokens),
      ttftMs: served ? flight.firstTokenMs - flight.sentMs : 0,
      tpotMs: served && outputTokens > 1 ? (now - flight.firstTokenMs) / (outputTokens - 1) : 0,
      e2eMs: now - flight.sentMs,
      attempts: flight.attempts,
      client: flight.play.client,
      heldMs: flight.heldMs,
      thinkMs: flight.turn.thinkMs,
      aloneMs: this.#plays.aloneMs(flight.play),
    });
    this.#plays.next(flight.play);
  }

  #release(flight: Flight): void {
    const { charge } = flight;
    const generated = flight.sequence?.generated ?? 0;
    flight.charge = undefined;
    if (charge !== undefined) {
      this.#pickers[flight.picker]!.release(charge, generated);
      this.#tellTurns(flight.picker);
    }
    this.#toMirrors(flight, (picker, mirrored) => picker.release(mirrored, generated));
    flight.mirrors.clear();
  }

  /** Sisters hear of it after the delay. */
  #toMirrors(flight: Flight, tell: (picker: SimulatedPicker, charge: SimulatedCharge) => void): void {
    for (const [peer, charge] of flight.mirrors) {
      this.#events.after(this.#fleet.pickers.sharingDelayMs, () => tell(this.#pickers[peer]!, charge));
    }
  }
}

/** Counts of all pickers together; undefined = they count none. */
function sumOf(counts: readonly (SessionCounts | undefined)[]): SessionCounts | undefined {
  const [first, ...rest] = counts.filter((each) => each !== undefined);
  return first && rest.reduce((sum, each) => added(sum, each), first);
}

function added<Counts extends object>(a: Counts, b: Counts): Counts {
  const sum = Object.entries(a).map(([name, value]) => {
    const other = b[name as keyof Counts] as unknown;
    return [name, typeof value === 'number' ? value + (other as number) : added(value as object, other as object)];
  });
  return Object.fromEntries(sum) as Counts;
}
