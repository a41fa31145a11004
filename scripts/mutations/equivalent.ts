// Mutants that no test can notice, each with the reason. The text of the line names them, so that they are found again
// where other lines of the module move.

export interface EquivalentMutant {
  /** Compiled module, or source of the core. */
  readonly module: string;
  readonly before: string;
  readonly after: string;
  /** One word: speed, unread, unique, repeated, unreachable. */
  readonly reason: string;
}

export const EQUIVALENT: readonly EquivalentMutant[] = [
  {
    module: 'assembly/gate/wait-slots.ts',
    before: 'atomic.store<u32>(GATE, 0, GATE_ASLEEP);',
    after: '{};',
    reason: 'speed',
  },
  {
    module: 'assembly/prefix/export.ts',
    before: 'if (at.parent == 0) return 0;',
    after: 'if (false) return 0;',
    reason: 'unread',
  },
  {
    module: 'assembly/request/content.ts',
    before: 'if (end - from < LONG_RUN_BYTES) return from;',
    after: 'if (end + from < LONG_RUN_BYTES) return from;',
    reason: 'speed',
  },
  {
    module: 'dist/src/flow-control/flow-controller.js',
    before: 'if (this.#options.gate.forgetBands(BAND_IDLE_MS, now) > 0)',
    after: 'if (this.#options.gate.forgetBands(BAND_IDLE_MS, now) >= 0)',
    reason: 'repeated',
  },
  {
    module: 'dist/src/flow-control/policies/fairness/service-heap.js',
    before: 'return this.#requests.sequence[head[a]] < this.#requests.sequence[head[b]];',
    after: 'return this.#requests.sequence[head[a]] <= this.#requests.sequence[head[b]];',
    reason: 'unique',
  },
  {
    module: 'dist/src/ingress/transports/http2/client-frames.js',
    before: 'if (this.#uncredited > CONNECTION_WINDOW_BYTES) {',
    after: 'if (this.#uncredited >= CONNECTION_WINDOW_BYTES) {',
    reason: 'unreachable',
  },
];
