import { describe, expect, it } from 'vitest';
import { PromptKind } from '../../dist/src/core/types.js';
import { scan } from './request-scanner-harness.ts';

/** Whether the scan of a body sees media, however it is cut into pieces. */
function seesMedia(kind: PromptKind, body: unknown): boolean {
  const bytes = Buffer.from(JSON.stringify(body));
  const seen = [1, 3, 7, bytes.length].map((length) => {
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += length) pieces.push(bytes.subarray(at, at + length));
    const { accepted, result } = scan(kind, pieces);
    expect(accepted).toBe(true);
    return result!.hasMedia;
  });
  expect(new Set(seen).size).toBe(1);
  return seen[0]!;
}

const messages = (...content: unknown[]) => ({ model: 'm', messages: [{ role: 'user', content }] });

describe('a prompt has media', () => {
  it.each([
    ['an image', { type: 'image_url', image_url: { url: 'http://x/y.png' } }, true],
    ['an image without a URL', { type: 'image_url' }, true],
    ['sound', { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } }, true],
    ['sound by URL', { type: 'audio_url', audio_url: { url: 'http://x/a.wav' } }, true],
    ['video', { type: 'video_url', video_url: { url: 'http://x/v.mp4' } }, true],
    ['the type behind the image', { image_url: { url: 'http://x' }, type: 'image_url' }, true],
    ['text', { type: 'text', text: 'hi' }, false],
    ['text that speaks of an image', { type: 'text', text: '"type":"image_url"' }, false],
    ['an image without a type', { image_url: { url: 'http://x' } }, false],
    ['embeddings of an image', { type: 'image_embeds', image_embeds: 'aGk=' }, false],
    ['a file', { type: 'file', file: { file_id: 'f' } }, false],
    ['a longer name', { type: 'image_url_of_something' }, false],
    ['a type that is no text', { type: 5 }, false],
  ])('a prompt has media in a chat by %s: %j is %s', (_what, part, media) => {
    expect(seesMedia(PromptKind.chat, messages({ type: 'text', text: 'hello' }, part))).toBe(media);
  });

  it.each([
    ['an image', { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }, true],
    [
      'the result of a tool',
      { type: 'tool_result', content: [{ type: 'image', source: { type: 'url', url: 'x' } }] },
      true,
    ],
    ['text', { type: 'text', text: 'hi' }, false],
    ['a document', { type: 'document', source: { type: 'url', url: 'x' } }, false],
  ])('a prompt has media in Anthropic messages by %s', (_what, part, media) => {
    expect(seesMedia(PromptKind.messages, messages(part))).toBe(media);
  });

  it('a prompt has media in the items of the responses and conversations APIs', () => {
    const items = [{ role: 'user', content: [{ type: 'input_image', image_url: 'http://x' }] }];
    expect(seesMedia(PromptKind.responses, { model: 'm', input: items })).toBe(true);
    expect(seesMedia(PromptKind.conversations, { model: 'm', items })).toBe(true);
    expect(seesMedia(PromptKind.responses, { model: 'm', input: [{ role: 'user', content: 'hi' }] })).toBe(false);
  });

  it('a prompt has media by the features beside token ids', () => {
    const tokens = { model: 'm', token_ids: [1, 2] };
    expect(seesMedia(PromptKind.tokens, { ...tokens, features: { mm_hashes: { image: ['a'] } } })).toBe(true);
    expect(seesMedia(PromptKind.tokens, { features: { mm_hashes: { image: ['a'] } }, ...tokens })).toBe(true);
    for (const features of [undefined, null, {}])
      expect(seesMedia(PromptKind.tokens, { ...tokens, features })).toBe(false);
  });

  it('a prompt has media not by tools, and only by the last of several prompts', () => {
    const tools = [{ type: 'image', function: { type: 'image_url' } }];
    expect(seesMedia(PromptKind.chat, { tools, ...messages({ type: 'text', text: 'hi' }) })).toBe(false);
    const twice =
      '{"messages":[{"role":"user","content":[{"type":"image_url"}]}],"messages":[{"role":"user","content":"x"}]}';
    expect(scan(PromptKind.chat, [Buffer.from(twice)]).result!.hasMedia).toBe(false);
  });
});
