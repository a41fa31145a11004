import { describe, expect, it } from 'vitest';
import { PromptKind } from '../../dist/src/core/types.js';
import { createDialects, DEFAULT_PARSERS, type ParserName } from '../../dist/src/request/dialects.js';

const opaque = { prompt: undefined, namesModel: false, answer: undefined };

describe('the dialect of a path', () => {
  const dialects = createDialects(['openai-parser']);

  it.each([
    ['/v1/completions', PromptKind.completions],
    ['/v1/completions/render', PromptKind.completions],
    ['/v1/chat/completions', PromptKind.chat],
    ['/v1/chat/completions/render', PromptKind.chat],
    ['/v1/embeddings', PromptKind.embeddings],
    ['/v1/responses', PromptKind.responses],
    ['/v1/conversations', PromptKind.conversations],
    ['/v1/images/generations', PromptKind.images],
    ['/mounted/foo-v1/chat/completions', PromptKind.chat],
    ['/v1/chat/completions/', PromptKind.chat],
    ['/v1/chat/completions?stream=/v1/embeddings', PromptKind.chat],
    ['/v1/chat/completions/?x', PromptKind.chat],
  ])('the dialect of a path of %s is found by its longest suffix', (path, kind) => {
    expect(dialects.find(path)).toMatchObject({ prompt: kind });
  });

  it.each(['/v1/models', '/', '', '/v1/chat', '/v1/completions/x'])(
    'the dialect of a path does not exist for %j without a fallback',
    (path) => {
      const message = `no parser registered matching path suffix for: ${path}`;
      expect(dialects.find(path)).toMatchObject({ kind: 'rejected', code: 'BadRequest', message });
    },
  );

  it('the dialect of a path is opaque for every other path when passthrough is listed', () => {
    const both = createDialects(DEFAULT_PARSERS);
    expect(both.find('/v1/models')).toMatchObject(opaque);
    expect(both.find('/v1/completions')).toMatchObject({ prompt: PromptKind.completions });
  });

  it('the dialect of a path is opaque for every path when only passthrough is listed', () => {
    expect(createDialects(['passthrough-parser']).find('/v1/completions')).toMatchObject(opaque);
  });

  it('the dialect of a path ends the list at the parser that takes everything', () => {
    expect(createDialects(['passthrough-parser', 'openai-parser']).find('/v1/completions')).toMatchObject(opaque);
  });

  it.each<[ParserName, string, PromptKind, boolean]>([
    ['anthropic-parser', '/v1/messages', PromptKind.messages, true],
    ['anthropic-parser', '/claude/v1/messages/', PromptKind.messages, true],
    ['vllmhttp-parser', '/inference/v1/generate', PromptKind.tokens, true],
    ['sglanghttp-parser', '/generate', PromptKind.sglang, false],
    ['sglanghttp-parser', '/generate/?x=1', PromptKind.sglang, false],
    ['vllmgrpc-parser', '/vllm.grpc.engine.VllmEngine/Generate', PromptKind.engine, false],
    ['vllmgrpc-parser', '/vllm.grpc.engine.VllmEngine/Embed', PromptKind.engineEmbed, false],
    ['vertexai-parser', '/google.cloud.aiplatform.v1.PredictionService/ChatCompletions', PromptKind.vertexChat, false],
    ['vertexai-parser', '/google.cloud.aiplatform.v1.PredictionService/RawPredict', PromptKind.vertexResponses, false],
    ['vertexai-parser', '/x.PredictionService/StreamRawPredict', PromptKind.vertexResponses, false],
  ])('the dialect of a path of %s claims %s', (parser, path, prompt, namesModel) => {
    expect(createDialects([parser]).find(path)).toMatchObject({ parser, prompt, namesModel, skipsResponse: false });
  });

  it('the dialect of a path of token counting is read for its model alone and has no response', () => {
    const found = createDialects(['anthropic-parser']).find('/v1/messages/count_tokens');
    const read = { prompt: PromptKind.messages, namesModel: true, countsOnly: true };
    expect(found).toMatchObject({ ...read, answer: undefined, skipsResponse: true });
  });

  it.each<[ParserName, string, string]>([
    ['anthropic-parser', '/v1/xmessages', 'unsupported API endpoint: /v1/xmessages'],
    ['sglanghttp-parser', '/v1/generate', 'unsupported path: /v1/generate'],
    ['sglanghttp-parser', '/xgenerate', 'unsupported path: /xgenerate'],
    [
      'vllmgrpc-parser',
      '/vllm.grpc.engine.VllmEngine/Abort',
      'no parser registered matching path suffix for: /vllm.grpc.engine.VllmEngine/Abort',
    ],
  ])('the dialect of a path of %s does not take %s', (parser, path, message) => {
    expect(createDialects([parser]).find(path)).toMatchObject({ kind: 'rejected', code: 'BadRequest', message });
  });
});
