import { resolve } from 'node:path';
import { z } from 'zod';
import type { TokenSettings } from '../../contract/token-settings.js';
import { durationMilliseconds, parseDuration } from '../duration.js';
import { duration } from '../duration-schema.js';
import { definePlugin } from '../plugin.js';
import { estimate } from './token-estimate.js';

/** Default deadline of a text and of a message with parts, also for values that are not above 0; llm-d-router's. */
const DEFAULT_TIMEOUT = '5s';
const DEFAULT_PARTS_TIMEOUT = '30s';
const DEFAULT_LOCAL_TIMEOUT = '1s';
const DEFAULT_URL = 'http://localhost:8000';

const vllm = () =>
  z.strictObject({
    url: z
      .url({ protocol: /^https?$/, error: 'expected the base URL of a server, such as http://localhost:8000' })
      .default(DEFAULT_URL)
      .describe('Base URL of the server that renders prompts: a sidecar, a service, or one model server.'),
    servingEndpoints: z
      .boolean()
      .default(false)
      .describe('Let the endpoints of the pool render in turn, instead of the server at `url`.'),
    timeout: duration
      .default(DEFAULT_TIMEOUT)
      .describe(`Longest wait for the tokens of a text; ${DEFAULT_TIMEOUT} when not above 0.`),
    mmTimeout: duration
      .default(DEFAULT_PARTS_TIMEOUT)
      .describe(
        `The same for messages that consist of parts, such as images; ${DEFAULT_PARTS_TIMEOUT} when not above 0.`,
      ),
  });

const local = () =>
  z
    .strictObject({
      path: z
        .string()
        .min(1, 'expected the folder that holds tokenizer.json')
        .describe('Folder with tokenizer.json and, for chats, tokenizer_config.json or chat_template.jinja.'),
      timeout: duration.default(DEFAULT_LOCAL_TIMEOUT).describe('Longest wait for the tokens of a prompt.'),
      threads: z.int().min(1).max(8).default(1).describe('Threads that cut prompts, for each shard.'),
    })
    .optional()
    .describe("Cut every chat and completion by the model's own tokeniser files, on threads beside the shards.");

const udsTokenizerConfig = () =>
  z
    .strictObject({
      socketFile: z.string().optional().describe('Where the socket is.'),
      useTCP: z.boolean().optional().describe('The socket is a TCP address.'),
    })
    .optional()
    .describe('Deprecated, and not served: a tokeniser behind a Unix socket. Tokens are estimated.');

const parameters = () =>
  z
    .strictObject({
      modelName: z
        .string()
        .optional()
        .describe('Name of the model as the rendering server knows it. Alone it selects `vllm` with its defaults.'),
      estimate: estimate(),
      vllm: vllm().optional().describe('Ask a vLLM server for the tokens of every prompt.'),
      local: local(),
      udsTokenizerConfig: udsTokenizerConfig(),
    })
    .refine(
      (given) => [given.estimate, given.vllm, given.local, given.udsTokenizerConfig].filter(Boolean).length <= 1,
      {
        error: 'only one of estimate, vllm, local or udsTokenizerConfig may be set',
      },
    )
    .refine(({ vllm, modelName }) => vllm === undefined || Boolean(modelName), {
      error: 'vllm needs modelName, the name of the model as the rendering server knows it',
    });

type Parameters = z.output<ReturnType<typeof parameters>>;

function milliseconds(text: string, otherwise: string): number {
  const given = durationMilliseconds(text);
  return given > 0 ? given : parseDuration(otherwise)!;
}

function tokenSettings(given: Parameters): TokenSettings | undefined {
  if (given.local !== undefined) {
    const { path, timeout, threads } = given.local;
    return { kind: 'local', folder: resolve(path), timeoutMs: milliseconds(timeout, DEFAULT_LOCAL_TIMEOUT), threads };
  }
  if (given.estimate !== undefined || given.udsTokenizerConfig !== undefined || !given.modelName) return undefined;
  const { url, servingEndpoints, timeout, mmTimeout } = given.vllm ?? vllm().parse({});
  return {
    kind: 'render',
    url: servingEndpoints ? undefined : url.replace(/\/+$/, ''),
    modelName: given.modelName,
    timeoutMs: milliseconds(timeout, DEFAULT_TIMEOUT),
    partsTimeoutMs: milliseconds(mmTimeout, DEFAULT_PARTS_TIMEOUT),
  };
}

function advise({ udsTokenizerConfig, estimate }: Parameters): readonly string[] {
  return [
    ...(udsTokenizerConfig === undefined
      ? []
      : ['udsTokenizerConfig is deprecated and not served: tokens are estimated; use vllm']),
    ...(estimate?.image === undefined && estimate?.video === undefined
      ? []
      : ['estimate.image and estimate.video have no effect: an image counts as 225 tokens, other parts by their JSON']),
  ];
}

export const tokenProducer = definePlugin({
  type: 'token-producer',
  kinds: ['producer'],
  stability: 'Beta',
  doc:
    'Says which tokens a prompt has. Without parameters an estimate: four bytes for a token, counted while the body ' +
    ('arrives. With `vllm`, a vLLM server renders and tokenises every chat and completion; with `local`, the ' +
      'tokeniser ') +
    'files of the model do. A prompt that is not tokenised in time is estimated, and counted as such.',
  parameters,
  files: [['local', 'path']],
  produces: ['prompt-tokens'],
  defaultProducerOf: ['prompt-tokens'],
  advise,
  tokenSettings,
});
