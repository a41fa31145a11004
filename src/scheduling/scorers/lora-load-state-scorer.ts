import { z } from 'zod';
import type { LoadedAdapters } from '../../contract/endpoint-facts.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews } from '../hooks/hooks.js';
import { openThread } from '../open-thread.js';
import { definePlugin } from '../plugin.js';
import { textHash } from '../text-hash.js';

const share = (fallback: number, what: string) => z.number().min(0).max(1).default(fallback).describe(what);

const parameters = () =>
  z
    .strictObject({
      gpuResidentScore: share(1, 'The adapter is in a slot of the GPU.'),
      cpuResidentScore: share(0.7, 'The adapter is in host memory only.'),
      freeSlotScore: share(0.6, 'The adapter is not loaded, and a slot of the GPU is free.'),
      evictableScore: share(0.3, 'The adapter is not loaded, and one on the GPU has no requests and is not pinned.'),
      saturatedScore: share(0, 'The adapter is not loaded, and every slot has requests or is pinned.'),
      placementBonus: share(
        0.03,
        'Added for one endpoint of each adapter, the same one every time, until it has the adapter on the GPU.',
      ),
      headroomBonus: share(0.03, 'Added in proportion to the free slots of the GPU.'),
      loadHorizonSeconds: z
        .number()
        .min(0)
        .default(0)
        .describe('Accepted, without effect: the scores count, not the load times that engines report.'),
    })
    .superRefine((given, context) => {
      const problem = tierProblem(given);
      if (problem !== undefined) context.addIssue({ code: 'custom', path: [problem.field], message: problem.text });
    });

type Parameters = z.output<ReturnType<typeof parameters>>;

const TIERS = ['gpuResidentScore', 'cpuResidentScore', 'freeSlotScore', 'evictableScore', 'saturatedScore'] as const;

/** Scores that would let a bonus outweigh a tier, or tiers out of order. */
function tierProblem(given: Omit<Parameters, 'loadHorizonSeconds'>): { field: string; text: string } | undefined {
  const bonuses = given.placementBonus + given.headroomBonus;
  if (bonuses >= 1) return { field: 'placementBonus', text: 'placementBonus + headroomBonus must be below 1' };
  for (let i = 1; i < TIERS.length; i++) {
    const [upper, lower] = [TIERS[i - 1]!, TIERS[i]!];
    const gap = given[upper] - given[lower];
    if (gap < 0) return { field: lower, text: `must not be above ${upper}` };
    if (gap > 0 && gap * (1 - bonuses) <= bonuses) {
      return {
        field: lower,
        text: `is too close to ${upper}: a bonus would outweigh the gap; make the bonuses smaller`,
      };
    }
  }
  return undefined;
}

/** Score of an endpoint by where the adapter is. */
function tierOf(given: Parameters, loaded: LoadedAdapters | undefined, adapter: string): number {
  const level = loaded?.levels?.get(adapter);
  if (level !== undefined) return level === 'gpu' ? given.gpuResidentScore : given.cpuResidentScore;
  if (loaded === undefined) return given.saturatedScore;
  if (loaded.onGpu < loaded.slots) return given.freeSlotScore;
  return loaded.replaceable ? given.evictableScore : given.saturatedScore;
}

/** Share of the slots that serve no adapter now: requests for the base model go there. */
function baseModelScore(loaded: LoadedAdapters | undefined): number {
  if (loaded === undefined || loaded.slots === 0) return 1;
  return Math.max(loaded.slots - loaded.busy, 0) / loaded.slots;
}

/** Endpoint of an adapter by rendezvous hashing (Thaler and Ravishankar 1998). */
function homeOf(endpoints: EndpointViews, adapter: string): number | undefined {
  let home: number | undefined;
  let highest = -1;
  for (const slot of endpoints.slots) {
    const hash = textHash(`${adapter}\0${endpoints.at(slot)?.endpoint.id ?? ''}`);
    if (hash > highest) [home, highest] = [slot, hash];
  }
  return home;
}

function scoreAdapter(given: Parameters, adapter: string, endpoints: EndpointViews, column: Float32Array): void {
  const scale = 1 - given.placementBonus - given.headroomBonus;
  const home = homeOf(endpoints, adapter);
  for (const slot of endpoints.slots) {
    const loaded = endpoints.adaptersOf(slot);
    let score = tierOf(given, loaded, adapter) * scale;
    if (slot === home && loaded?.levels?.get(adapter) !== 'gpu') score += given.placementBonus;
    if (loaded !== undefined && loaded.slots > loaded.onGpu) {
      score += (given.headroomBonus * (loaded.slots - loaded.onGpu)) / loaded.slots;
    }
    column[slot] = score;
  }
}

export const loraLoadStateScorer = definePlugin({
  type: 'lora-load-state-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc:
    'Prefers endpoints by where the LoRA adapter of the request is loaded: on the GPU, in host memory, or nowhere, ' +
    'with a slot of the GPU free, one to be had, or none. Requests for the base model prefer endpoints whose slots ' +
    'serve no adapters. Needs the metrics of loraLoadedSpec, loraGPULoadedSpec and loraGPUSlotsSpec ' +
    '(core-metrics-extractor); endpoints without them are alike. Open in llm-d-router (#2792): it may change.',
  signals: ['LoRA adapters'],
  parameters,
  readsLoadedAdapters: true,
  advise: ({ loadHorizonSeconds }) => [
    openThread(2792),
    ...(loadHorizonSeconds > 0 ? ['loadHorizonSeconds has no effect: the scores of the tiers count'] : []),
  ],
  host: (given) => ({
    score: ({ targetModel }: HookRequest, endpoints: EndpointViews, column: Float32Array) => {
      if (targetModel === '') return;
      const isBase = endpoints.slots.some((slot) => endpoints.adaptersOf(slot)?.baseModel === targetModel);
      if (!isBase) return scoreAdapter(given, targetModel, endpoints, column);
      const scale = 1 - given.placementBonus - given.headroomBonus;
      for (const slot of endpoints.slots) column[slot] = baseModelScore(endpoints.adaptersOf(slot)) * scale;
    },
  }),
});
