import { z } from 'zod';
import { HARDWARE } from '../fleet/hardware.js';
import { workloadKinds } from '../workloads/kinds.js';

const positive = z.number().gt(0);
const share = z.number().min(0).max(1);

const stepConstants = z
  .strictObject({
    weightsMs: positive.describe('Milliseconds to read the weights once.'),
    tokenUs: z.number().min(0).describe('Microseconds of matrix products per token.'),
    power: z.number().min(1).max(20).default(2).describe('How sharp the bend between the two is.'),
    reduceMs: z.number().min(0).default(0).describe('Milliseconds per step of the all-reduce between GPUs.'),
    reduceTokenUs: z.number().min(0).default(0).describe('Microseconds per token of the same.'),
    prefillTokenUs: z.number().min(0).default(0).describe('Microseconds per prompt token of attention.'),
    prefillPairNs: z.number().min(0).default(0).describe('Nanoseconds per pair of tokens of prompt attention.'),
    decodeSequenceUs: z.number().min(0).default(0).describe('Microseconds per decoding sequence.'),
    decodeTokenNs: z.number().min(0).default(0).describe('Nanoseconds per token of context of a decoding sequence.'),
    mixed: z.number().min(1).default(1.7).describe('Factor on decode attention in steps with prompts.'),
    rowsMs: z.number().min(0).default(0).describe('Milliseconds per step of sampling.'),
    rowUs: z.number().min(0).default(0).describe('Microseconds per sampled token.'),
    overheadMs: z.number().min(0).default(1).describe('Milliseconds per step of scheduling and launching.'),
  })
  .describe('Step time of an engine of your own; docs/simulation.md has the formula.');

const recipe = z
  .strictObject({
    tokenMs: positive.describe('Milliseconds of one token of a lone request with a short context.'),
    promptTokensPerSecond: positive.describe('Prompt tokens per second at full chunks.'),
    kvBytesPerToken: positive.describe('Bytes of one token in the KV cache, over all layers and GPUs.'),
    bandwidthGBs: positive.describe('Memory bandwidth of all GPUs of the engine together.'),
  })
  .describe('An engine of your own by what every deployment knows, in the place of constants.');

const tier = z.strictObject({
  place: z.enum(['host', 'disk', 'remote']).describe('Where it lies, as KV events tell it.'),
  tokens: z.int().min(1).describe('Tokens that it holds.'),
  bandwidthGBs: positive.describe('Gigabytes per second at which it gives blocks back.'),
});

const engineFields = {
  hardware: z
    .enum(Object.keys(HARDWARE) as [string, ...string[]])
    .optional()
    .describe('Model and GPU, by name.'),
  constants: stepConstants.optional(),
  recipe: recipe.optional(),
  kvTokens: z.int().min(1).optional().describe('Tokens that fit into the KV cache; default: that of the hardware.'),
  maxBatchedTokens: z.int().min(1).optional().describe('Most tokens in a step (max_num_batched_tokens).'),
  maxSequences: z.int().min(1).optional().describe('Most running sequences (max_num_seqs); 256.'),
  longPrefillTokens: z.int().min(1).optional().describe('Most prompt tokens of one sequence in a step.'),
  tiers: z
    .array(tier)
    .max(3)
    .optional()
    .describe('Tiers below the GPU, nearest first, to which the cache writes what it forgets; none.'),
  kvBytesPerToken: positive.optional().describe('Bytes of one token in the KV cache; default: that of the hardware.'),
};

const group = z.strictObject({
  count: z.int().min(1).default(1).describe('Endpoints of this kind.'),
  ...engineFields,
  speed: positive.default(1).describe('Factor on the speed.'),
  labels: z.record(z.string(), z.string()).default({}).describe('Labels of the endpoints.'),
  joinSeconds: z.number().min(0).default(0).describe('When they join the pool.'),
  leaveSeconds: positive.optional().describe('When they leave it; default: never.'),
  lies: z.boolean().default(false).describe('They always show that they have nothing to do.'),
});

const incident = z.strictObject({
  kind: z.enum(['slow', 'crash']).describe('slow: the speed changes for a while. crash: down, everything lost.'),
  endpoint: z.int().min(0).describe('Number of the endpoint, from 0.'),
  atSeconds: z.number().min(0),
  forSeconds: positive,
  factor: positive.default(0.5).describe('Factor on the speed while slow.'),
});

const sampleFaults = z.strictObject({
  lost: share.default(0).describe('Share of the measurements that pickers never learn of.'),
  distorted: share.default(0).describe('Share of them whose times are off by a factor from 0.1 to 10.'),
  shuffled: share.default(0).describe('Share of them whose times are those of the request before.'),
});

const fleet = z.strictObject({
  ...engineFields,
  endpoints: z.int().min(1).max(512).default(8).describe('Equal endpoints, when there are no groups.'),
  groups: z.array(group).default([]).describe('Kinds of endpoints; what they leave out is taken from the fleet.'),
  truth: z.enum(['formula', 'table']).default('formula').describe('Step times by the fitted formula or by a table.'),
  metrics: z
    .strictObject({
      scrapeMs: positive.default(50),
      jitter: share.default(0.1).describe('How much the time between scrapes varies.'),
      lagMs: z.number().min(0).default(0).describe('Age of the numbers that an engine shows.'),
      failures: share.default(0).describe('Share of scrapes that fail.'),
    })
    .prefault({}),
  kvEvents: z
    .strictObject({ delayMs: z.number().min(0).default(0), loss: share.default(0) })
    .optional()
    .describe('Feed the prefix index by events of the engines instead of by what was sent.'),
  pickers: z
    .strictObject({
      replicas: z.int().min(1).max(16).default(1),
      sharing: z.enum(['none', 'load', 'all']).default('none').describe('What replicas tell each other.'),
      sharingDelayMs: z.number().min(0).default(0),
      clockSkewMs: z.number().min(0).default(0).describe('By how much the clocks of the first and the last differ.'),
    })
    .prefault({}),
  client: z
    .strictObject({
      timeoutMs: z.number().min(0).default(0).describe('Clients hang up after this; 0 = never.'),
      retries: z.int().min(0).max(10).default(2),
      backoffMs: z.number().min(0).default(100),
      targets: z
        .strictObject({ ttftMs: positive, tpotMs: positive })
        .optional()
        .describe('Latency targets that every request names in its headers; absent = none.'),
    })
    .prefault({}),
  samples: sampleFaults.prefault({}),
  labels: sampleFaults.optional().describe('Deprecated name of samples.'),
  incidents: z.array(incident).default([]),
  pathMs: z.number().min(0).default(1).describe('Milliseconds from the client to the engine.'),
  stepNoise: share.default(0.03).describe('Standard deviation of the logarithm of a step time.'),
  pauseShare: share.default(0).describe('Share of the time spent in pauses such as garbage collection.'),
  pauseMs: positive.default(200),
});

const common = {
  name: z.string().min(1).describe('Name in the report.'),
  seconds: positive.default(300).describe('Length of the traffic in simulated seconds.'),
  fleet: z.record(z.string(), z.unknown()).optional().describe('Fields of the fleet that differ for this workload.'),
  tuning: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Fields of this workload that differ where the oracle is chosen, such as the half of a trace.'),
};

/** Of traffic that is made, not of what is put together from other workloads. */
const traffic = {
  concurrency: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe(
      'Fixed number of clients in the place of a rate: each plays one session after the other ' +
        'until `seconds` are over.',
    ),
  priority: z.int().optional().describe('Priority of its requests, for flow control; 0.'),
  tenant: z.string().optional().describe('Fairness id of its requests, for flow control; none.'),
  anonymous: z
    .boolean()
    .optional()
    .describe('Whether its clients name their sessions in no header, for rules of other routers that need one; no.'),
  only: z.array(z.int().min(0)).min(1).optional().describe('Numbers of the endpoints that may serve it; all.'),
};

const together = z.strictObject({
  ...common,
  kind: z.literal('together'),
  parts: z.array(z.string().min(1)).min(1).describe('Other workloads of the suite, all at the same time.'),
});

const sequence = z.strictObject({
  ...common,
  kind: z.literal('sequence'),
  parts: z
    .array(z.strictObject({ workload: z.string().min(1), seconds: positive.default(240) }))
    .min(1)
    .describe('Other workloads of the suite, one after the other.'),
});

const variant = z.strictObject({
  name: common.name,
  kind: z.literal('variant'),
  of: z.string().min(1).describe('Workload of the suite whose traffic it has.'),
  load: positive.default(1).describe('Factor on the rate of that traffic.'),
  fleet: z.record(z.string(), z.unknown()).default({}).describe('Fields of the fleet that differ.'),
});

const plain = workloadKinds.map(({ kind, parameters }) =>
  z.strictObject({ ...common, ...traffic, kind: z.literal(kind), ...parameters.shape }),
);

const weights = z.record(z.string().min(1), z.number().min(0));

const policy = z.strictObject({
  name: z.string().min(1).describe('Name in the report; of a baseline: which one.'),
  configuration: z
    .string()
    .min(1)
    .optional()
    .describe('EndpointPickerConfig, relative to the suite; absent = weights or a baseline.'),
  weights: weights.optional().describe('A profile of these scorers: type of the plugin and weight.'),
  weightsByWorkload: z
    .record(z.string().min(1), weights)
    .optional()
    .describe('The same for single workloads, by their names.'),
  kvEvents: z.boolean().optional().describe('Feed its index by events of the engines.'),
});

const oracle = z
  .strictObject({
    name: z.string().min(1).default('grid-oracle').describe('Name of the policy in the report.'),
    scorers: z
      .record(z.string().min(1), z.array(z.number().min(0)).min(1))
      .describe('Types of scorers, each with the weights to try; all combinations are tried, equal proportions once.'),
    firstSeed: z.int().min(1).default(1001),
    seeds: z.int().min(1).max(100).default(2).describe('Runs by which it is chosen; other seeds than the suite’s.'),
  })
  .describe(
    'One more policy: the best of a grid of weights, chosen for each workload on other seeds than it is shown with.',
  );

/** A suite: fleet, traffic and policies that `pointsman simulate` crosses. */
export const suiteSchema = z.strictObject({
  blockTokens: z.int().min(1).default(64).describe('Tokens of a KV block and of a block of the prefix index.'),
  fleet: fleet.prefault({}),
  workloads: z
    .array(
      z.discriminatedUnion('kind', [sequence, together, variant, ...plain] as [
        typeof sequence,
        typeof together,
        typeof variant,
        ...typeof plain,
      ]),
    )
    .min(1),
  run: z.array(z.string()).optional().describe('Names of the workloads to run; default: all.'),
  policies: z.array(policy).min(1),
  oracle: oracle.optional(),
  capacity: z
    .strictObject({
      goodput: share.default(0.9).describe('Share of the requests that must meet both objectives.'),
      from: positive.default(0.25).describe('Lowest and highest factor on the rate of a workload that is looked at.'),
      to: positive.default(4),
      steps: z.int().min(1).max(20).default(8).describe('Halvings of the range between them.'),
    })
    .optional()
    .describe('Look for the most load that each policy carries, by bisection, instead of comparing costs.'),
  reference: z.string().default('default').describe('Policy that the others are compared with.'),
  seeds: z.int().min(1).max(1000).default(3).describe('Runs of each pair, with seeds 1, 2, ….'),
  firstSeed: z.int().min(1).default(1),
  warmup: z
    .strictObject({ seconds: z.number().min(0).default(60), requests: z.int().min(0).default(500) })
    .prefault({})
    .describe('What is left out at the beginning: the shorter of the two.'),
  slo: z.strictObject({ ttftMs: positive.default(2000), tpotMs: positive.default(60) }).prefault({}),
});

export const fleetSchema = fleet;
export type FleetText = z.output<typeof fleet>;
export type Suite = z.output<typeof suiteSchema>;
export type SuiteWorkload = Suite['workloads'][number];
export type SuitePolicy = Suite['policies'][number];
export type ScorerWeights = z.output<typeof weights>;
