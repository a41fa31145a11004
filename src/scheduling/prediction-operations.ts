import type { PredictionSettings } from '../contract/prediction-settings.js';
import { CORE } from '../core/core-names.js';
import type { CompileContext, ConfiguredPlugin, DataKey } from './plugin.js';
import type { CompiledScheduling, ProgramOperation } from './program.js';

const PREDICTION: DataKey = 'latency-prediction';

/** The settings of the first latency predictor. @throws with one line when they cannot be used */
export function predictionOf(producers: readonly ConfiguredPlugin[]): CompiledScheduling['prediction'] {
  for (const { name, definition, parameters } of producers) {
    const settings = definition.predictionSettings?.(parameters);
    if (settings !== undefined) return { name, type: definition.type, ...settings };
  }
  return undefined;
}

/**
 * First operations of a profile's program: the prediction, when one of its plugins or an admitter reads it, and the
 * admitters.
 */
export function openingOperations(
  members: readonly ConfiguredPlugin[],
  admitters: readonly ConfiguredPlugin[],
  prediction: CompiledScheduling['prediction'],
  context: (plugin: { readonly name: string }) => CompileContext,
): readonly ProgramOperation[] {
  const admitting = admitters.flatMap(({ name, definition, parameters }) => {
    const operation = definition.compile?.(parameters, 1, context({ name }));
    return operation === undefined ? [] : [operation];
  });
  // Training goes on without a reader of the prediction, and its accuracy is measured.
  if (prediction === undefined) return admitting;
  const consumed = [...members, ...admitters].some(({ definition, parameters }) =>
    definition.consumes?.(parameters).some(({ key }) => key === PREDICTION),
  );
  if (!consumed && !prediction.predicts) return admitting;
  return [predictOperation(prediction, context(prediction)), ...admitting];
}

function predictOperation(
  settings: PredictionSettings & { readonly name: string },
  { mask }: CompileContext,
): ProgramOperation {
  const { name, streaming, bufferFactor, roleLabel } = settings;
  const prefill =
    roleLabel === '' ? 0 : 1 + mask(`${roleLabel} is prefill`, (labels) => labels[roleLabel] === 'prefill');
  return {
    code: 'OP_PREDICT',
    name,
    weight: 1,
    parameters: [sourceOf(settings), streaming ? 1 : 0, bufferFactor, prefill],
  };
}

/** First parameter of OP_PREDICT. */
function sourceOf({ predicts, servers, modelWhenServersFail }: PredictionSettings): number {
  if (!predicts) return CORE.PREDICT_NOTHING;
  if (servers === undefined || servers.prediction.length === 0) return CORE.PREDICT_BY_MODEL;
  return modelWhenServersFail ? CORE.PREDICT_ON_HOST_OR_BY_MODEL : CORE.PREDICT_ON_HOST;
}
