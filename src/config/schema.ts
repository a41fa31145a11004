import { z } from 'zod';
import { once } from '../runtime/once.js';
import { duration } from '../scheduling/duration-schema.js';
import { adaptationConfig } from './adaptation.js';
import { parseQuantity, QUANTITY_EXPECTED, QUANTITY_FORM } from './quantity.js';
import { replicationConfig } from './replication.js';

/** A section whose schema is made for the first configuration that has it: a start makes those of its own. */
function late<Section extends z.ZodObject>(section: () => Section): z.ZodLazy<Section> {
  const schema = z.lazy(section);
  // What a missing section counts as: zod would make the section to ask it, and a mapping has neither.
  Object.defineProperties(schema._zod, { optin: { value: undefined }, optout: { value: undefined } });
  return schema;
}

/** Schema of a quantity, as text or as a number, which is not converted. */
const quantity = z
  .union([z.number(), z.string()], { error: QUANTITY_EXPECTED })
  .refine((given) => parseQuantity(String(given)) !== undefined, { error: QUANTITY_EXPECTED })
  .meta({ pattern: QUANTITY_FORM.source, examples: ['1Gi', '500Mi', 1000] });

const name = z.string().min(1);
const reference = z.strictObject({ pluginRef: name.describe('Name of a plugin from plugins.') });

const plugin = z.strictObject({
  type: name.describe('Type of the plugin: what it is.'),
  name: z.string().optional().describe('What references call it; its type when absent.'),
  parameters: z.record(z.string(), z.unknown()).optional().describe('Parameters of the type.'),
});

const schedulingProfile = z.strictObject({
  name: name.describe('What the profile handler calls it.'),
  plugins: z
    .array(
      z.strictObject({
        pluginRef: name.describe('Name of a filter, scorer or picker from plugins.'),
        weight: z.number().optional().describe('Weight of a scorer; 1 when absent. Without effect on other kinds.'),
      }),
    )
    .default([])
    .describe('Filters, scorers and at most one picker; a decision runs them in this order of kinds.'),
});

const dataLayer = once(() =>
  z.strictObject({
    injectDefaults: z
      .boolean()
      .default(true)
      .describe('Fetch metrics with metrics-data-source and core-metrics-extractor when no source does.'),
    sources: z
      .array(
        z.strictObject({
          pluginRef: name.describe('Name of a data source from plugins.'),
          extractors: z.array(reference).default([]).describe('What reads the data of the source.'),
        }),
      )
      .default([])
      .describe('Where the signals of endpoints come from.'),
    discovery: z
      .strictObject({
        endpoints: reference.optional().describe('Where the endpoints come from.'),
        peers: z
          .strictObject({ pluginRef: z.string().default('').describe('Name of a plugin; empty = absent.') })
          .optional()
          .describe('Where other replicas come from. Without effect: see `replication`.'),
      })
      .optional()
      .describe('Where endpoints, and other replicas, come from.'),
    crossReplica: z
      .strictObject({
        syncerPluginRef: z.string().optional().describe('Name of a replica syncer. Without effect: see `replication`.'),
        syncInterval: duration.optional().describe('Time between two syncs. Without effect.'),
        publishTimeout: duration.optional().describe('Longest time of a publication. Without effect.'),
      })
      .optional()
      .describe('How llm-d-router shares state between replicas. Without effect: Pointsman has `replication`.'),
  }),
);

const priorityBand = once(() =>
  z.strictObject({
    priority: z
      .int()
      .min(-(2 ** 31))
      .max(2 ** 31 - 1)
      .optional()
      .describe('Priority of the band; 0 when absent. Without effect in the default bands.'),
    maxBytes: quantity.optional().describe('Request bytes that may wait in the band; 0 or absent = 1000000000.'),
    maxRequests: quantity.optional().describe('Requests that may wait in the band; 0 or absent = 5000.'),
    maxTokens: quantity
      .optional()
      .describe(
        'Tokens that may wait in the band: prompts that are not cached, and expected outputs; 0 or absent = no bound.',
      ),
    defaultRequestTTL: duration
      .optional()
      .describe('Longest wait of a request of the band, 0s = no end; absent = defaultRequestTTL of all bands.'),
    fairnessPolicyRef: z.string().optional().describe('How flows share the band; global-strict-fairness-policy.'),
    orderingPolicyRef: z.string().optional().describe('Which request of a flow goes first; fcfs-ordering-policy.'),
  }),
);

const tenantLimit = once(() =>
  z.strictObject({
    fairnessId: name.describe('Whose requests; * = those of every fairness id that has no entry, each for itself.'),
    tokensPerSecond: z.number().gt(0).describe('Tokens a second: prompts that are not cached, and expected outputs.'),
    burstTokens: z.number().gt(0).describe('Tokens at once after a pause.'),
  }),
);

const sessions = once(() =>
  z.strictObject({
    mode: z
      .enum(['off', 'shadow', 'on'])
      .default('shadow')
      .describe(
        'off = nothing is counted; shadow = sessions are counted and reported, and decisions do not ask them; on = a ' +
          'turn waits while no KV cache has room for its session.',
      ),
    maxWait: duration
      .default('300s')
      .describe('Longest time that a turn is held; after it the next free place is its own. 0s = no such bound.'),
    stretch: z
      .number()
      .min(0)
      .max(1)
      .default(0.06)
      .describe(
        'Share of the KV cache by which a turn may exceed it once it was held for three refills of a cache; it grows ' +
          'with the cube of the wait. Where other held turns would fill all caches twice, it takes twice the wait.',
      ),
    smallPrompt: z
      .number()
      .gt(0)
      .lt(1)
      .default(0.02)
      .describe('Share of the KV cache of an endpoint below which a prompt is no turn of a session.'),
    identity: name
      .default('auto')
      .describe(
        'Name of the session-id-producer or agent-identity by whose header sessions are told apart first, and by ' +
          'prompts where it is missing; auto = by prompts.',
      ),
    idleLease: duration
      .optional()
      .describe(
        'Time for which an idle session keeps its place; absent = for as long as the learned odds of its return are ' +
          'worth it.',
      ),
    capacityTokens: z
      .int()
      .gt(0)
      .optional()
      .describe('Tokens that a KV cache holds while its endpoint does not tell; absent = it has room for every turn.'),
    usableCache: z
      .number()
      .gt(0)
      .max(1)
      .optional()
      .describe('Share of a KV cache that sessions may fill; absent = all of it.'),
    forgetAfter: duration
      .optional()
      .describe('Time after which a session without a place is forgotten; absent = when a new one needs its entry.'),
    retention: z
      .strictObject({
        engine: z
          .enum(['sglang', 'dynamo'])
          .describe('Whose field is written: priority (SGLang), or nvext.agent_hints.priority (Dynamo).'),
        priority: z.int().min(1).max(100).default(1).describe('Its value; requests without one have 0.'),
      })
      .optional()
      .describe('Asks engines in the body of a turn to keep its blocks longer than those of other requests.'),
  }),
);

const flowControl = once(() =>
  z.strictObject({
    maxBytes: quantity
      .optional()
      .describe('Request bytes that may wait in all bands together; 0 or absent = no bound.'),
    maxRequests: quantity.optional().describe('Requests that may wait in all bands together; 0 or absent = no bound.'),
    maxTokens: quantity.optional().describe('Tokens that may wait in all bands together; 0 or absent = no bound.'),
    defaultRequestTTL: duration.optional().describe('Longest wait of a request; 60s.'),
    noEndpointRequestTTL: duration.optional().describe('Longest wait while there are no endpoints; defaultRequestTTL.'),
    maxExpectedWait: duration
      .optional()
      .describe('Requests that would probably wait longer are refused at once; 0 or absent = they wait all the same.'),
    tenantLimits: z
      .array(tenantLimit())
      .default([])
      .describe('Tokens that tenants may use, a bucket for each fairness id.'),
    defaultPriorityBand: priorityBand()
      .optional()
      .describe('Bands that are not listed; absent = like the listed band next below, or with the defaults.'),
    defaultNegativePriorityBand: priorityBand().optional().describe('The same for bands below 0.'),
    priorityBands: z
      .array(priorityBand())
      .default([])
      .describe('One entry for each priority with settings of its own.'),
    usageLimitPolicyPluginRef: z.string().optional().describe('How full the pool may get; static-usage-limit-policy.'),
    saturationDetector: z
      .strictObject({ pluginRef: z.string().default('').describe('Name of a plugin from plugins; empty = absent.') })
      .optional()
      .describe('How full the pool is; utilization-detector. Needs no feature gate.'),
    replicas: z
      .int()
      .min(1)
      .max(1000)
      .optional()
      .describe('Pickers that serve the pool side by side; each fills its share of every endpoint. 1.'),
    enableEviction: z
      .boolean()
      .default(false)
      .describe('Let waiting requests of higher priority push out running ones.'),
    sessions: late(sessions)
      .optional()
      .describe('Agents, which send their whole history each turn, and the caches they fill.'),
  }),
);

/**
 * An EndpointPickerConfig of `llm-d.ai/v1`, to which older ones are converted. References and plugin parameters are
 * checked later.
 */
export const endpointPickerConfig = z.strictObject({
  apiVersion: z.string().optional().describe('llm-d.ai/v1, or llm-d.ai/v1alpha1; empty = absent.'),
  kind: z.string().optional().describe('EndpointPickerConfig.'),
  featureGates: z.array(z.string()).default([]).describe('Features to turn on or off: name, name=true or name=false.'),
  plugins: z.array(plugin).default([]).describe('Every plugin with its parameters. Names are unique.'),
  schedulingProfiles: z
    .array(schedulingProfile)
    .default([])
    .describe('How endpoints are chosen. Absent = one profile of every filter, scorer and picker in plugins.'),
  dataLayer: late(dataLayer).optional().describe('Endpoints and their signals.'),
  flowControl: late(flowControl).optional().describe('Queues in front of the pool.'),
  adaptation: late(adaptationConfig)
    .optional()
    .describe('Learning what requests cost, from their latencies; mode shadow.'),
  replication: late(replicationConfig)
    .optional()
    .describe('Replicas of the picker that tell each other what they know.'),
  requestHandler: z
    .strictObject({
      parsers: z
        .array(reference)
        .default([])
        .describe('Parsers in the order in which they are asked; openai-parser and passthrough-parser.'),
    })
    .optional()
    .describe('How requests are read.'),
});

export type EndpointPickerConfig = z.output<typeof endpointPickerConfig>;
export type PriorityBandConfig = z.output<ReturnType<typeof priorityBand>>;
export type FlowControlConfig = z.output<ReturnType<typeof flowControl>>;
