import { afterEach, describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { defaultPoolSizes } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { PromptKind } from '../../dist/src/core/types.js';
import { core, openScanner, readChain, scan, scanner, sizes } from './request-scanner-harness.ts';

afterEach(() => expect(scanner.openScans).toBe(0));

/** Everything a scan of one JSON value finds. */
const found = (which: PromptKind, value: unknown) => scan(which, [Buffer.from(JSON.stringify(value))]);
const chatHashes = (messages: unknown, more: object = {}) =>
  found(PromptKind.chat, { model: 'm', messages, ...more }).hashes!;

describe('the chain of a scan', () => {
  const long = 'the same beginning of a conversation, long enough for several blocks of sixty-four bytes. '.repeat(6);

  it('the chain of a scan begins alike for prompts that begin alike', () => {
    const first = chatHashes([{ role: 'user', content: `${long}and then this` }]);
    const second = chatHashes([{ role: 'user', content: `${long}but then that, which is longer by a few words` }]);
    const shared = Math.floor((4 + long.length) / 64);
    expect(shared).toBe(8);
    expect(second.slice(0, shared)).toEqual(first.slice(0, shared));
    expect(second[shared]).not.toBe(first[shared]);
  });

  it('the chain of a scan hashes whole blocks of a longer prompt as of its beginning', () => {
    const whole = found(PromptKind.completions, { prompt: long.slice(0, 384) }).hashes!;
    const longer = found(PromptKind.completions, { prompt: long.slice(0, 400) }).hashes!;
    expect(whole).toHaveLength(6);
    expect(longer).toHaveLength(7);
    expect(longer.slice(0, 6)).toEqual(whole);
  });

  it('the chain of a scan does not depend on how the text is escaped', () => {
    const plainText = Buffer.from('{"messages":[{"role":"user","content":"a\u00e9\n"}]}'.replace('\u00e9', 'é'));
    const escapedText = Buffer.from('{"m\u0065ssages":[{"rol\u0065":"\u0075ser","content":"\u0061\u00e9\u000a"}]}');
    expect(scan(PromptKind.chat, [escapedText]).hashes).toEqual(scan(PromptKind.chat, [plainText]).hashes);
  });

  it('the chain of a scan differs from the first block on for another model, cache salt, tools or system', () => {
    const messages = [{ role: 'user', content: long }];
    const firsts = [
      chatHashes(messages),
      chatHashes(messages, { cache_salt: 'a' }),
      chatHashes(messages, { cache_salt: '' }),
      chatHashes(messages, { tools: [{ type: 'function' }] }),
      chatHashes(messages, { system: 'be brief' }),
      chatHashes(messages, { system: [{ type: 'function' }] }),
      scan(PromptKind.chat, [Buffer.from(JSON.stringify({ messages }))], 64, 'other').hashes!,
    ].map((hashes) => hashes[0]);
    expect(new Set(firsts).size).toBe(firsts.length);
  });

  it('the chain of a scan differs from the first block on for other instructions of the responses API', () => {
    const hashes = (body: object) => found(PromptKind.responses, body).hashes!;
    const first = hashes({ instructions: 'be brief', input: long });
    expect(hashes({ instructions: 'be polite', input: long })[0]).not.toBe(first[0]);
    expect(hashes({ input: long, instructions: 'be brief' })).toEqual(first);
  });

  it('the chain of a scan begins with the blocks that tools fill, so that prompts with the same tools share them', () => {
    const tools = [{ type: 'function', function: { name: 'f', description: 'd'.repeat(200) } }];
    const filled = Math.floor(JSON.stringify(tools).length / 64);
    expect(filled).toBe(4);
    const first = chatHashes([{ role: 'user', content: long }], { tools });
    const second = chatHashes([{ role: 'user', content: `other ${long}` }], { tools });
    expect(first).toHaveLength(filled + chatHashes([{ role: 'user', content: long }]).length);
    expect(second.slice(0, filled)).toEqual(first.slice(0, filled));
    expect(second[filled]).not.toBe(first[filled]);
  });

  it('the chain of a scan takes no more blocks of tools than the longest chain has', () => {
    const tools = 'd'.repeat(2000);
    const hashes = scan(PromptKind.completions, [Buffer.from(JSON.stringify({ tools, prompt: 'x' }))], 1).hashes!;
    expect(hashes).toHaveLength(1200);
  });

  it('the chain of a scan is the same whether tools stand before or behind the messages', () => {
    const messages = [{ role: 'user', content: long }];
    const tools = [{ type: 'function', function: { name: 'f' } }];
    expect(found(PromptKind.chat, { messages, tools }).hashes).toEqual(
      found(PromptKind.chat, { tools, messages }).hashes,
    );
  });

  it('the chain of a scan tells salts apart that differ behind the bytes that are kept', () => {
    const salt = 's'.repeat(300);
    const first = chatHashes([{ role: 'user', content: long }], { cache_salt: `${salt}1` });
    const second = chatHashes([{ role: 'user', content: long }], { cache_salt: `${salt}2` });
    expect(first[0]).not.toBe(second[0]);
  });

  it('the chain of a scan tells images apart and counts each as the same number of tokens', () => {
    const image = (url: string) => [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }];
    const first = found(PromptKind.chat, { messages: image('data:image/png;base64,AAAA') });
    const second = found(PromptKind.chat, { messages: image(`data:image/png;base64,${'B'.repeat(5000)}`) });
    expect(first.hashes![0]).not.toBe(second.hashes![0]);
    expect(first.result!.promptBytes).toBe(4 + 4 * CORE.SCAN_IMAGE_TOKENS);
    expect(second.result!.promptBytes).toBe(first.result!.promptBytes);
  });

  it('the chain of a scan lists images, videos and sounds, each different one once and at most 32', () => {
    const url = (name: string) => ({ type: 'image_url', image_url: { url: name } });
    const video = { type: 'video_url', video_url: { url: 'c' } };
    const sound = { type: 'input_audio', input_audio: { data: 'd', format: 'wav' } };
    const media = (content: readonly object[]) =>
      found(PromptKind.chat, { messages: [{ role: 'user', content }] }).result!.media;
    const some = media([url('a'), url('b'), { type: 'text', text: 'x' }, url('a'), video, sound]);
    expect(some.map(({ modality }) => modality)).toEqual(['image', 'image', 'video', 'audio']);
    expect(new Set(some.map(({ hash }) => hash)).size).toBe(4);
    expect(media(Array.from({ length: 40 }, (_, i) => url(`${i}`)))).toHaveLength(32);
    expect(media([{ type: 'text', text: 'x' }])).toEqual([]);
  });

  it('the chain of a scan does not depend on where a client puts its cache_control', () => {
    const part = (more: object) => [{ role: 'user', content: [{ type: 'text', text: long, ...more }] }];
    expect(chatHashes(part({ cache_control: { type: 'ephemeral' } }))).toEqual(chatHashes(part({})));
  });

  it('the chain of a scan takes the last of several prompts', () => {
    const twice = Buffer.from(`{"prompt":${JSON.stringify(long.repeat(40))},"prompt":"b"}`);
    const outcome = scan(PromptKind.completions, [twice], 16);
    expect(outcome.hashes).toEqual(scan(PromptKind.completions, [Buffer.from('{"prompt":"b"}')], 16).hashes);
    expect(outcome.result!.promptBytes).toBe(1);
  });

  it('the chain of a scan hashes the first blocks, and no tail, of a prompt that has more than the longest chain', () => {
    const text = long.repeat(4).slice(0, 1250);
    const hashes = scan(PromptKind.completions, [Buffer.from(JSON.stringify({ prompt: text }))], 1).hashes!;
    const start = scan(PromptKind.completions, [Buffer.from(JSON.stringify({ prompt: text.slice(0, 1200) }))], 1)
      .hashes!;
    expect(hashes).toHaveLength(1200);
    expect(hashes).toEqual(start);
  });
});

describe('the shape of a prompt', () => {
  const rows: ReadonlyArray<readonly [keyof typeof PromptKind, unknown, boolean]> = [
    ['completions', { prompt: 'text' }, true],
    ['completions', { prompt: '' }, false],
    ['completions', { prompt: [''] }, true],
    ['completions', { prompt: ['a', 'b'] }, true],
    ['completions', { prompt: [1, 2, 4294967295] }, true],
    ['completions', { prompt: [1, 4294967296] }, false],
    ['completions', { prompt: [1, 2.5] }, false],
    ['completions', { prompt: [1, -2] }, false],
    ['completions', { prompt: ['a', 1] }, false],
    ['completions', { prompt: [1, 'a'] }, false],
    ['completions', { prompt: [[1, 2]] }, false],
    ['completions', { prompt: [] }, false],
    ['completions', { prompt: { text: 'a' } }, false],
    ['completions', { input: 'text' }, false],
    ['completions', { nested: { prompt: 'text' } }, false],
    ['chat', { messages: [{}] }, true],
    ['chat', { messages: [] }, false],
    ['chat', { messages: 'text' }, false],
    ['chat', { messages: [null] }, true],
    ['chat', { messages: [{ role: 'user', content: null }] }, true],
    ['chat', { messages: [{ role: 'user', content: 5 }] }, false],
    [
      'chat',
      {
        messages: [
          { role: 'user', content: { text: 'a' } },
          { role: 'user', content: 'b' },
        ],
      },
      false,
    ],
    ['chat', { messages: [{ role: 5, content: 'a' }] }, false],
    ['chat', { messages: [{ role: 'user' }, 'text'] }, false],
    ['chat', { prompt: 'text' }, false],
    ['responses', { input: 'text' }, true],
    ['responses', { input: [{ role: 'user' }] }, true],
    ['responses', { input: null }, false],
    ['embeddings', { input: [1, 'a'] }, true],
    ['embeddings', {}, false],
    ['embeddings', { input: '' }, false],
    ['embeddings', { input: [] }, false],
    ['embeddings', { input: 5 }, false],
    ['embeddings', { input: { text: 'a' } }, false],
    ['responses', { input: '' }, true],
    ['responses', { input: [] }, true],
    ['conversations', { items: [{ type: 'message' }] }, true],
    ['conversations', { items: [] }, false],
    ['conversations', { items: 'text' }, false],
    ['conversations', { items: null }, false],
    ['images', { prompt: 'a cat' }, true],
    ['images', { prompt: ['a cat'] }, false],
    ['images', { prompt: '' }, false],
  ];
  it.each(rows)('%s %j: allowed is %s', (name, value, allowed) => {
    const { result, hashes } = found(PromptKind[name], value);
    expect(result!.promptRange !== undefined).toBe(allowed);
    if (!allowed) expect(hashes).toEqual([]);
  });
});

describe('the model of a body', () => {
  it.each(['5', 'null', '{"name":"m"}', '["m"]'])(
    'the model of a body is unknown when its value is %s, but its place is found',
    (value) => {
      const body = `{"prompt":"x","model":"first","model": ${value} }`;
      const { result } = scan(PromptKind.completions, [Buffer.from(body)]);
      expect(result!.model).toBeUndefined();
      const start = body.lastIndexOf(value);
      expect(result!.modelRange).toEqual({ start, end: start + value.length });
    },
  );
});

describe('the bounds of a scan', () => {
  const objectOfModel = (model: string) => found(PromptKind.chat, { model }).result!.model;

  it('a scan gives no number when all scans are open, and one again when one was closed', () => {
    const ids = Array.from({ length: sizes.scans }, () => scanner.open(PromptKind.chat, 64));
    expect(new Set(ids).size).toBe(sizes.scans);
    expect(scanner.openScans).toBe(sizes.scans);
    expect(scanner.open(PromptKind.chat, 64)).toBe(-1);
    scanner.close(ids[3]!);
    expect(scanner.open(PromptKind.chat, 64)).toBe(ids[3]);
    for (const id of ids) scanner.close(id);
  });

  it.each<[string, (id: number) => unknown]>([
    ['fed', (id) => scanner.feed(id, Buffer.from('{}'))],
    ['finished', (id) => scanner.finish(id)],
    ['asked for its refusal', (id) => scanner.refusal(id)],
    ['asked for its result', (id) => scanner.result(id)],
    ['chained', (id) => scanner.chain(id, 'm')],
    ['closed', (id) => scanner.close(id)],
  ])('a scan that is closed cannot be %s', (_what, use) => {
    const id = scanner.open(PromptKind.chat, 64);
    scanner.close(id);
    expect(() => use(id)).toThrow(new RangeError(`no open request scan has the number ${id}`));
  });

  it('a scan keeps scans apart that are fed in turns', () => {
    const bodies = Array.from({ length: sizes.scans }, (_, i) =>
      Buffer.from(JSON.stringify({ model: `m${i}`, prompt: 'x\n'.repeat(50 + i) })),
    );
    const ids = bodies.map(() => scanner.open(PromptKind.completions, 16));
    for (let at = 0; at < 300; at += 7) {
      for (const [i, id] of ids.entries()) scanner.feed(id, bodies[i]!.subarray(at, at + 7));
    }
    ids.forEach((id, i) => {
      expect(scanner.finish(id)).toBe(true);
      const hashes = readChain(id, 'target');
      const result = scanner.result(id);
      scanner.close(id);
      expect(scan(PromptKind.completions, [bodies[i]!], 16)).toMatchObject({ result, hashes });
    });
  });

  it('a scan stops hashing, counts it and goes on scanning when no hash page is left', () => {
    // 8 scans and chains of 1,200 blocks: twelve pages of 512 hashes, behind 64 hashes in each state.
    const blocks = 64 + 512 * 2;
    const body = Buffer.from(JSON.stringify({ prompt: 'x'.repeat(blocks + 50), model: 'm' }));
    const ids = Array.from({ length: 8 }, () => scanner.open(PromptKind.completions, 1));
    const before = scanner.usage.hashShortages;
    for (const id of ids) expect(scanner.feed(id, body) && scanner.finish(id)).toBe(true);
    expect(ids.map((id) => scanner.chain(id, 'm').blocks)).toEqual([1138, 1138, 1138, 1138, 64, 64, 64, 64]);
    expect(scanner.usage.hashShortages).toBe(before + 4);
    expect(scanner.result(ids[7]!)).toMatchObject({ model: 'm', promptBytes: blocks + 50 });
    expect(scanner.chain(ids[7]!, 'm').tail).toBe(false);
    for (const id of ids) scanner.close(id);
    expect(scan(PromptKind.completions, [body], 1).hashes).toHaveLength(1138);
  });

  it('a scan accepts 512 levels and refuses the next one', () => {
    const nested = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels));
    expect(scan(PromptKind.chat, [nested(512)]).accepted).toBe(true);
    expect(scan(PromptKind.chat, [nested(513)]).refusal).toEqual({
      position: 512,
      reason: 'nested deeper than 512 levels',
    });
  });

  it('a scan keeps at most 1,024 bytes of the model, whole characters only', () => {
    expect(objectOfModel('m'.repeat(1024))).toBe('m'.repeat(1024));
    expect(objectOfModel('m'.repeat(1025))).toBe('m'.repeat(1024));
    expect(objectOfModel(`${'m'.repeat(1022)}é`)).toBe(`${'m'.repeat(1022)}é`);
    expect(objectOfModel(`${'m'.repeat(1023)}é`)).toBe('m'.repeat(1023));
    expect(objectOfModel(`${'m'.repeat(1021)}😀x`)).toBe('m'.repeat(1021));
  });

  it('a scan keeps at most 256 bytes of the cache salt', () => {
    expect(found(PromptKind.chat, { cache_salt: 's'.repeat(400) }).result!.cacheSalt).toBe('s'.repeat(256));
  });

  it('a scan ignores an output bound whose text is longer than 64 bytes', () => {
    const bound = (zeros: number) =>
      scan(PromptKind.completions, [Buffer.from(`{"max_tokens":1.${'0'.repeat(zeros)}}`)]).result!.maxOutputTokens;
    expect(bound(62)).toBe(1);
    expect(bound(63)).toBeUndefined();
  });

  it('a scan scans chunks that are longer than what one call into the core takes', () => {
    const prompt = 'é"\\\n'.repeat(150_000);
    const outcome = scan(PromptKind.completions, [Buffer.from(JSON.stringify({ prompt, model: 'm' }))], 1024);
    expect(outcome.result).toMatchObject({ model: 'm', promptBytes: Buffer.byteLength(prompt) });
  });

  it('a scan takes token lists whose bytes are more than their JSON', () => {
    const prompt = new Array(120_000).fill(7);
    expect(found(PromptKind.completions, { prompt }).result!.promptBytes).toBe(480_000);
  });

  it('a scan refuses a body of more than 4 GiB', () => {
    const id = scanner.open(PromptKind.chat, 64);
    const state = core.call.scanAddress(id) >>> 0;
    core.view.setUint32(state + CORE.SCAN_POSITION, 0xffffffff - 3, true);
    expect(scanner.feed(id, Buffer.from('   '))).toBe(true);
    expect(scanner.feed(id, Buffer.from(' '))).toBe(false);
    expect(scanner.refusal(id)).toEqual({ position: 0xffffffff, reason: 'the body is longer than 4 GiB' });
    scanner.close(id);
  });

  it('a scan refuses arguments and numbers that do not exist', () => {
    expect(() => scanner.open(PromptKind.chat, 0)).toThrow('blockBytes must be a whole number from 1 to 1048576');
    expect(() => scanner.open(99 as PromptKind, 64)).toThrow('unknown prompt kind 99');
    expect(() => scanner.feed(7, Buffer.from('{}'))).toThrow('no open request scan has the number 7');
    expect(() => scanner.result(4000)).toThrow(RangeError);
  });

  it('a scan gives up what was open when a scanner is made for a thread again', () => {
    const { core: own, scanner: first } = openScanner();
    const ids = Array.from({ length: 8 }, () => first.open(PromptKind.completions, 1));
    for (const id of ids) first.feed(id, Buffer.from(`{"prompt":"${'x'.repeat(1100)}`));
    const second = new RequestScanner(own);
    expect(second.openScans).toBe(0);
    const id = second.open(PromptKind.completions, 1);
    expect(second.feed(id, Buffer.from(`{"prompt":"${'x'.repeat(1100)}"}`)) && second.finish(id)).toBe(true);
    expect(second.chain(id, 'm').blocks).toBe(1100);
  });

  it('a scan needs less than 400 MB for the default sizes', () => {
    const { scans, chainBlocks, threads } = defaultPoolSizes;
    const perThread = BigInt.asUintN(64, core.call.scanRegionBytes(scans, chainBlocks) as unknown as bigint);
    expect(Number(perThread) * threads).toBeLessThan(400e6);
  });
});

describe('a refusal', () => {
  const rows: ReadonlyArray<readonly [string, number, string]> = [
    ['', 0, 'the body is empty: a JSON document is required'],
    [' \n', 2, 'the body is empty: a JSON document is required'],
    ['\ufeff{}', 0, 'unexpected byte'],
    ['{"a":1,}', 7, 'unexpected byte'],
    ['[1,]', 3, 'unexpected byte'],
    ['{"a" 1}', 5, 'unexpected byte'],
    ['[1}', 2, 'unexpected byte'],
    ['{]', 1, 'unexpected byte'],
    ['{"a":1', 6, 'unexpected end of JSON input'],
    ['"abc', 4, 'unexpected end of JSON input'],
    ['tru', 3, 'unexpected end of JSON input'],
    ['-', 1, 'unexpected end of JSON input'],
    ['{} x', 3, 'unexpected byte after the end of the JSON document'],
    ['nulx', 3, 'expected true, false or null'],
    ['[-x]', 2, 'malformed number'],
    ['[1.]', 3, 'malformed number'],
    ['[01]', 2, 'unexpected byte'],
    ['["\\x"]', 3, 'unknown escape in a string'],
    ['["\\u00g0"]', 6, '\\u must be followed by four hex digits'],
    ['["a\tb"]', 3, 'raw control character in a string: write it as an escape'],
  ];
  it.each(rows)('a refusal of %j names byte %i: %s', (text, position, reason) => {
    expect(scan(PromptKind.chat, [Buffer.from(text)]).refusal).toEqual({ position, reason });
  });

  it('a refusal stands whatever is fed afterwards', () => {
    const id = scanner.open(PromptKind.chat, 64);
    expect(scanner.feed(id, Buffer.from('[1,]'))).toBe(false);
    expect(scanner.feed(id, Buffer.from('2]'))).toBe(false);
    expect(scanner.finish(id)).toBe(false);
    expect(scanner.refusal(id)).toEqual({ position: 3, reason: 'unexpected byte' });
    scanner.close(id);
  });
});
