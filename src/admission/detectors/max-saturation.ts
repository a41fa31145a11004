import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

const stage = z.enum(['prefill', 'decode']);

export const maxSaturationParameters = () =>
  z
    .strictObject({
      detectors: z
        .array(z.string().min(1))
        .min(1)
        .refine((names) => new Set(names).size === names.length, { error: 'every detector may stand there once' })
        .describe('Names of the saturation detectors.'),
      stages: z
        .record(z.string(), z.array(stage).min(1))
        .default({})
        .describe(
          'Stages that a detector looks at, by its name: prefill, decode; a detector without an entry at both.',
        ),
    })
    .refine(({ detectors, stages }) => Object.keys(stages).every((name) => detectors.includes(name)), {
      path: ['stages'],
      error: 'every name must be one of detectors',
    });

export const maxSaturationDetector = definePlugin({
  type: 'max-saturation-detector',
  kinds: ['saturation-detector'],
  stability: 'Beta',
  doc:
    'The fullest of what several detectors say, for each endpoint by the stages that its role takes part in. ' +
    '`flow_control_detector_saturation` shows what each of them says.',
  parameters: maxSaturationParameters,
  references: ({ detectors }) =>
    detectors.map((name, index) => ({
      name,
      path: ['detectors', String(index)],
      kinds: ['saturation-detector'],
    })),
});
