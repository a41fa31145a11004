import { ignoredParameters } from '../scheduling/ignored-parameters.js';
import { definePlugin, type PluginDefinition, type Stability } from '../scheduling/plugin.js';
import type { ParserName } from './dialects.js';

function parser(type: ParserName, stability: Stability, doc: string): PluginDefinition {
  return definePlugin({ type, kinds: ['parser'], stability, doc, ...ignoredParameters });
}

/** Definitions of the parsers. Their claimed paths are in dialects.ts. */
export const parserPlugins: readonly PluginDefinition[] = [
  parser(
    'openai-parser',
    'Stable',
    'Understands the OpenAI API: chat completions, completions, embeddings, responses, conversations and image ' +
      'generation.',
  ),
  parser(
    'anthropic-parser',
    'Beta',
    'Understands the Anthropic API: messages, and token counting without a look at its answer.',
  ),
  parser(
    'vllmhttp-parser',
    'Beta',
    'Understands the token-in, token-out API of vLLM over HTTP: inference/v1/generate.',
  ),
  parser('sglanghttp-parser', 'Beta', 'Understands the native API of SGLang: /generate with token ids.'),
  parser(
    'vllmgrpc-parser',
    'Beta',
    'Understands the gRPC API of vLLM: Generate and Embed of its engine service, compressed or not.',
  ),
  parser(
    'vertexai-parser',
    'Beta',
    'Understands chat completions and raw predictions of Vertex AI over gRPC, compressed or not.',
  ),
  parser(
    'passthrough-parser',
    'Beta',
    'Takes every request and looks at nothing in it: such requests are routed without model, prompt or tokens.',
  ),
];
