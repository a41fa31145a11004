import { beforeAll, describe, expect, test } from 'vitest';
import { attachCore, createPoolMemory } from '../../dist/src/core/memory.js';
import { ResponseScanner, type ResponseScanOptions } from '../../dist/src/core/response-scanner.js';

const sizes = {
  endpoints: 64,
  indexBlocks: 64,
  requests: 16,
  chainBlocks: 16,
  threads: 2,
  scans: 8,
  telemetryBytes: 64,
};
let scanner: ResponseScanner;

beforeAll(() => {
  scanner = new ResponseScanner(attachCore(createPoolMemory(sizes), 1));
});

/** Feeds the pieces. @returns the bytes that came out and what was learned */
function read(pieces: readonly (string | Uint8Array)[], options: ResponseScanOptions) {
  const id = scanner.open(options);
  const outputs = pieces.map((piece, i) => Buffer.from(scanner.feed(id, Buffer.from(piece), i === pieces.length - 1)));
  const result = { output: Buffer.concat(outputs).toString(), usage: scanner.usage(id), events: scanner.events(id) };
  scanner.close(id);
  return { ...result, outputs: outputs.map(String) };
}

const usageOf = (text: string, streaming = true) => read([text], { streaming }).usage;
const usage = (promptTokens: number, completionTokens: number, totalTokens: number, cachedTokens = -1) => ({
  promptTokens,
  completionTokens,
  totalTokens,
  cachedTokens,
});
const unknown = usage(-1, -1, -1);
const changeName = { streaming: true, renameFrom: 'base-v2', renameTo: 'alias' };

describe('token usage in a stream', () => {
  test('token usage in a stream is taken from the event that carries it', () => {
    const stream =
      'data: {"id":"1","choices":[{"delta":{"content":"hi"}}],"usage":null}\n\n' +
      ('data: ' +
        '{"choices":[],"usage":{"prompt_tokens":7,"total_tokens":12,"completion_tokens":5,' +
        '"prompt_tokens_details":{"cached_tokens":4}}}\n\n') +
      'data: [DONE]\n\n';
    expect(read([stream], { streaming: true })).toMatchObject({ usage: usage(7, 5, 12, 4), events: 2, output: stream });
  });

  test('token usage in a stream is unknown when no event says anything', () => {
    expect(usageOf('data: {"choices":[]}\n\ndata: [DONE]\n\n')).toEqual(unknown);
  });

  test('token usage in a stream is found under the names and at the place of the responses API', () => {
    const event =
      'event: response.completed\ndata: ' +
      '{"type":"response.completed","response":{"usage":{"input_tokens":3,' +
      '"input_tokens_details":{"cached_tokens":2},"output_tokens":9,"total_tokens":12}}}\n\n';
    expect(usageOf(event)).toEqual(usage(3, 9, 12, 2));
  });

  test('token usage in a stream is not taken from below other members', () => {
    expect(usageOf('data: {"a":[1,{"b":{"usage":{"prompt_tokens":1,"completion_tokens":2}}}]}\n')).toEqual(unknown);
    expect(usageOf('data: {"x":{"usage":{"prompt_tokens":1}}}\n')).toEqual(unknown);
  });

  test('token usage in a stream does not come from text that merely looks like it', () => {
    const event = String.raw`data: {"content":"\"usage\":{\"prompt_tokens\":7}","usage_":{"prompt_tokens":7}}`;
    expect(usageOf(`${event}\n\n`)).toEqual(unknown);
  });

  test('token usage in a stream is recognised when its key is written with escapes', () => {
    expect(usageOf(`${String.raw`data: {"us\u0061ge":{"prompt\u005ftokens":7}}`}\n`)).toEqual(usage(7, -1, 7));
  });

  test('token usage in a stream takes numbers that are written as strings', () => {
    expect(usageOf('data: {"usage":{"prompt_tokens":"12","completion_tokens":"3"}}\n')).toEqual(usage(12, 3, 15));
  });

  test.each([
    ['null', 'null'],
    ['a truth value', 'true'],
    ['an object', '{"x":5}'],
    ['an array', '[5]'],
    ['a negative number', '-5'],
    ['a number with an exponent', '5e1'],
    ['a number above 2^53', '9007199254740993'],
    ['an empty string', '""'],
    ['a string that is no number', '"5x"'],
  ])('token usage in a stream ignores a field that is %s', (_, value) => {
    expect(usageOf(`data: {"usage":{"prompt_tokens":${value},"completion_tokens":3}}\n`)).toEqual(usage(-1, 3, 3));
  });

  test('token usage in a stream cuts off a fraction', () => {
    expect(usageOf('data: {"usage":{"prompt_tokens":12.0}}\n')).toEqual(usage(12, -1, 12));
  });

  test('token usage in a stream lets later fields that are not zero overwrite earlier ones', () => {
    const stream =
      'data: {"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}\n\n' +
      'data: {"usage":{"prompt_tokens":0,"completion_tokens":5}}\n\n';
    expect(usageOf(stream)).toEqual(usage(7, 5, 12));
  });

  test('token usage in a stream reports a zero as zero when nothing else is known', () => {
    expect(usageOf('data: {"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}\n')).toEqual(
      usage(0, 0, 0),
    );
  });

  test('token usage in a stream takes a lone total when neither half is known', () => {
    expect(usageOf('data: {"usage":{"total_tokens":9}}\n')).toEqual(usage(-1, -1, 9));
  });

  test('token usage in a stream leaves out an event that is not JSON and goes on with the next line', () => {
    const stream = 'data: {"usage":{"prompt_tokens":7}\ndata: {"usage":{"completion_tokens":2}}\n';
    expect(usageOf(stream)).toEqual(usage(-1, 2, 2));
  });

  test('token usage in a stream leaves out an event nested deeper than 127 levels', () => {
    const nested = (n: number) => `data: {"usage":{"prompt_tokens":7},"a":${'['.repeat(n)}${']'.repeat(n)}}\n`;
    expect(usageOf(nested(126))).toEqual(usage(7, -1, 7));
    expect(usageOf(nested(127))).toEqual(unknown);
  });

  test('token usage in a stream counts from a last line without an end', () => {
    expect(usageOf('data: {"usage":{"prompt_tokens":7}}')).toEqual(usage(7, -1, 7));
  });
});

describe('events of a stream', () => {
  test('events of a stream end with their chunk when the server left the end of the line out', () => {
    const pieces = [
      'data: {}',
      'data: {"usage":{"prompt_tokens":7,"completion_tokens":10,"total_tokens":17}}\ndata: [DONE]',
      '',
    ];
    expect(read(pieces, { streaming: true })).toMatchObject({ usage: usage(7, 10, 17), events: 2, outputs: pieces });
  });

  test.each([
    ['a space behind the colon', 'data: {}\n\ndata: {}\n\n', 2],
    ['no space', 'data:{}\n\ndata:{}\n\n', 2],
    ['CR', 'data: {}\r\rdata: {}\r\r', 2],
    ['CR and LF', 'data: {}\r\n\r\ndata: {}\r\n\r\n', 2],
    ['no blank lines', 'data: 1\ndata: 2', 2],
    ['other fields and comments', ': ping\nevent: x\nid: 4\ndata: {}\nretry: 1\n\ndatum: {}\n\n', 1],
    ['[DONE] in several shapes', 'data: [DONE]\ndata:[DONE]\r\ndata: [DONE] ', 0],
    ['what only begins like [DONE]', 'data: [DONE]x\ndata: [DON\ndata: []\ndata: [', 4],
    ['empty data', 'data:\n\ndata: \n\n', 2],
  ])('events of a stream are counted with %s', (_, stream, expected) => {
    expect(read([stream], { streaming: true }).events).toBe(expected);
    expect(read(stream.split(''), { streaming: true }).events).toBe(expected);
  });
});

describe('token usage of a JSON document', () => {
  test('token usage of a JSON document is read from the whole body, however it is cut', () => {
    const body =
      '{\n "object": "chat.completion",\r\n "usage": {"prompt_tokens": 10, "completion_tokens": 20, ' +
      '"total_tokens": 30}\n}\n';
    expect(usageOf(body, false)).toEqual(usage(10, 20, 30));
    expect(read(body.split(''), { streaming: false }).usage).toEqual(usage(10, 20, 30));
  });

  test('token usage of a JSON document counts only once the document has ended well', () => {
    const id = scanner.open({ streaming: false });
    scanner.feed(id, Buffer.from('{"usage":{"prompt_tokens":1}'), false);
    expect(scanner.usage(id)).toEqual(unknown);
    scanner.feed(id, Buffer.from('}'), true);
    expect(scanner.usage(id)).toEqual(usage(1, -1, 1));
    scanner.close(id);
  });

  test('token usage of a JSON document is unknown when text follows the document', () => {
    expect(usageOf('{"usage":{"prompt_tokens":1}} x', false)).toEqual(unknown);
  });

  test('token usage of a JSON document does not take a line for an event', () => {
    expect(read(['data: {}\n'], { streaming: false }).events).toBe(0);
  });
});

describe('the model name', () => {
  const renamed = (text: string, options: ResponseScanOptions = changeName) => read([text], options).output;

  test('the model name is changed at the top of an event', () => {
    expect(renamed('data: {"id":"x","model":"base-v2","choices":[]}\n\n')).toBe(
      'data: {"id":"x","model":"alias","choices":[]}\n\n',
    );
  });

  test('the model name is changed with white space around the colon and escapes in key and value', () => {
    expect(renamed(`${String.raw`data: { "m\u006fdel" : "base\u002dv2" }`}\n`)).toBe(
      `${String.raw`data: { "m\u006fdel" : "alias" }`}\n`,
    );
  });

  test('the model name is changed below "response" of a responses API event', () => {
    expect(renamed('data: {"type":"response.created","response":{"id":"r","model":"base-v2"}}\n')).toBe(
      'data: {"type":"response.created","response":{"id":"r","model":"alias"}}\n',
    );
  });

  test.each([
    ['another name', '{"model":"base-v3"}'],
    ['a longer name', '{"model":"base-v2-long"}'],
    ['a shorter name', '{"model":"base"}'],
    ['another key', '{"models":"base-v2"}'],
    ['another object', '{"choices":{"model":"base-v2"}}'],
    ['an array', '["model","base-v2"]'],
    ['an object in an array', '[{"model":"base-v2"}]'],
    ['"response" further down', '{"a":{"response":{"model":"base-v2"}}}'],
    ['an object behind "response"', '{"response":{},"a":{"model":"base-v2"}}'],
    ['an object below "response"', '{"response":{"a":{"model":"base-v2"}}}'],
    ['text inside a string', String.raw`{"content":"\"model\":\"base-v2\""}`],
  ])('the model name stays in %s', (_, json) => {
    expect(renamed(`data: ${json}\n`)).toBe(`data: ${json}\n`);
  });

  test('the model name is changed in a JSON document', () => {
    expect(renamed('{"model":"base-v2"}', { ...changeName, streaming: false })).toBe('{"model":"alias"}');
  });

  test('the model name is written with the escapes that JSON needs', () => {
    const odd = { streaming: false, renameFrom: 'a/ü😀', renameTo: 'q"\\\n\u{1f600}' };
    expect(JSON.parse(renamed(String.raw`{"model":"a\/\u00fc\ud83d\ude00"}`, odd))).toEqual({ model: odd.renameTo });
  });

  test.each([
    ['behind it', String.raw`{"model":"😀\ud83d"}`],
    ['before it', String.raw`{"model":"\ud83d😀"}`],
    ['before it as escapes', String.raw`{"model":"\ud83d\ud83d\ude00"}`],
    ['before its key', String.raw`{"\ud83dmodel":"😀"}`],
    ['the wrong way round', String.raw`{"model":"\ude00\ud83d"}`],
  ])('the model name does not match with half of a surrogate pair %s', (_, text) => {
    expect(renamed(text, { streaming: false, renameFrom: '😀', renameTo: 'b' })).toBe(text);
  });

  test('the model name does not match when text stands between the halves of a pair', () => {
    const text = String.raw`{"model":"\ud83dX\ude00"}`;
    expect(renamed(text, { streaming: false, renameFrom: 'X😀', renameTo: 'b' })).toBe(text);
  });

  test('the model name is held back from its first quote on while it may be the one, and no longer', () => {
    const { outputs } = read(['data: {"model":"ba', 'se', '-v', '2"}\n', '{"model":"bax'], changeName);
    expect(outputs).toEqual(['data: {"model":', '', '', '"alias"}\n', '{"model":"bax']);
  });

  test('the model name comes out unchanged when it turns out to be another', () => {
    const { outputs } = read(['data: {"model":"base', '-v3"}\n'], changeName);
    expect(outputs).toEqual(['data: {"model":', '"base-v3"}\n']);
  });

  test('the model name comes out when the answer ends inside it', () => {
    expect(read(['data: {"model":"ba'], changeName).output).toBe('data: {"model":"ba');
    expect(read(['data: {"model":"ba', ''], changeName).output).toBe('data: {"model":"ba');
  });

  test('the model name of 1,024 bytes is changed, a longer one is not', () => {
    const body = (n: number) => `{"model":"${'x'.repeat(n)}"}`;
    const options = (n: number) => ({ streaming: false, renameFrom: 'x'.repeat(n), renameTo: 'y' });
    expect(renamed(body(1024), options(1024))).toBe('{"model":"y"}');
    expect(renamed(body(1025), options(1025))).toBe(body(1025));
    expect(renamed('{"model":"x"}', { streaming: false, renameFrom: 'x', renameTo: 'y'.repeat(1025) })).toBe(
      '{"model":"x"}',
    );
  });

  test('the model name holds back at most six bytes for each byte of the name and its quote', () => {
    const name = 'x'.repeat(1024);
    const id = scanner.open({ streaming: false, renameFrom: name, renameTo: 'y' });
    scanner.feed(id, Buffer.from(`{"model":"${String.raw`\u0078`.repeat(1024)}`), false);
    expect(scanner.held(id)).toBe(6 * 1024 + 1);
    expect(String(scanner.feed(id, Buffer.from('x'), false))).toHaveLength(6 * 1024 + 2);
    expect(scanner.held(id)).toBe(0);
    scanner.close(id);
  });

  test('the model name is changed everywhere in an answer larger than one piece', () => {
    const event = (name: string) => `data: {"model":"${name}"}\n\n`;
    const many = 40_000;
    expect(renamed(event('base-v2').repeat(many))).toBe(event('alias').repeat(many));
  });
});

describe('a scan', () => {
  test('a scan returns the same object when nothing changes', () => {
    const id = scanner.open(changeName);
    const chunk = Buffer.from('data: {"model":"other","choices":[{"delta":{"content":"a"}}]}\n\n');
    expect(scanner.feed(id, chunk, false)).toBe(chunk);
    const large = Buffer.alloc(600_000, 'x');
    expect(scanner.feed(id, large, true)).toBe(large);
    scanner.close(id);
  });

  test('a scan is refused with -1 when all are open, and there is room again after a close', () => {
    const ids = Array.from({ length: sizes.scans }, () => scanner.open({ streaming: true }));
    expect(new Set(ids).size).toBe(sizes.scans);
    expect(scanner.open({ streaming: true })).toBe(-1);
    scanner.close(ids[3]!);
    expect(scanner.open({ streaming: true })).toBe(ids[3]);
    for (const id of ids) scanner.close(id);
    expect(scanner.free).toBe(sizes.scans);
  });

  test('a scan that is closed twice is freed once', () => {
    const id = scanner.open({ streaming: true });
    scanner.close(id);
    scanner.close(id);
    expect(scanner.free).toBe(sizes.scans);
  });

  test('a scan that is not open is refused by name', () => {
    expect(() => scanner.feed(3, Buffer.from(''), false)).toThrow('response scan 3 is not open');
    expect(() => scanner.usage(-1)).toThrow(RangeError);
  });

  test('a scan does not see what an earlier one in the same place had learned', () => {
    const first = scanner.open(changeName);
    scanner.feed(first, Buffer.from('data: {"usage":{"prompt_tokens":7}}\ndata: {"model":"base'), false);
    scanner.close(first);
    const second = scanner.open({ streaming: true });
    expect(second).toBe(first);
    expect(String(scanner.feed(second, Buffer.from('-v2"}'), true))).toBe('-v2"}');
    expect(scanner.usage(second)).toEqual(unknown);
    expect(scanner.events(second)).toBe(0);
    scanner.close(second);
  });

  test('a scan does not touch its neighbours', () => {
    const ids = [scanner.open(changeName), scanner.open(changeName), scanner.open(changeName)];
    const text = (i: number) => `data: {"usage":{"prompt_tokens":${i + 1}},"model":"base-v2"}\n`;
    const out = ['', '', ''];
    for (let at = 0; at < text(0).length; at++) {
      for (const [i, id] of ids.entries()) out[i] += String(scanner.feed(id, Buffer.from(text(i)[at]!), false));
    }
    for (const [i, id] of ids.entries()) {
      expect(out[i]).toBe(text(i).replace('base-v2', 'alias'));
      expect(scanner.usage(id).promptTokens).toBe(i + 1);
      scanner.close(id);
    }
  });
});
