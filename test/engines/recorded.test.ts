import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ResponseScanner } from '../../dist/src/core/response-scanner.js';
import { AnswerForm } from '../../dist/src/core/types.js';
import { EventStream } from '../../dist/src/kvevents/event-stream.js';
import { topicParts } from '../../dist/src/kvevents/frames.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';
import { renderedTokens } from '../../dist/src/request/tokens/rendered-tokens.js';
import { eventPool } from '../kvevents/pool.ts';
import { scanText } from '../pool/plain-scanner.js';
import { Recording, recordedVersions } from './recordings.ts';

const BLOCK_TOKENS = 32;

function signals(page: string) {
  const { engine } = new EngineTable().choose({});
  return engine.read(scanText(page, engine.wanted), { labels: undefined, adapters: undefined, shown: '' });
}

describe.each(recordedVersions('idle.metrics.gz'))('the pages of %s, as they were recorded', (version) => {
  const recording = new Recording(version);

  it('its metrics page tells signals, model and cache', () => {
    expect(signals(recording.page('idle'))).toMatchObject({
      ...{ waiting: 0, running: 0, kvUsage: 0, model: 'tiny', blockTokens: BLOCK_TOKENS, blockCount: 1_000 },
    });
  });

  it('its metrics page tells whether it sleeps', () => {
    expect(signals(recording.page('idle')).asleep).toBe(false);
    expect(signals(recording.page('asleep')).asleep).toBe(true);
  });
});

describe.each(recordedVersions('answers.json'))('%s, as it was recorded', (version) => {
  const recording = new Recording(version);
  const answers = recording.answers();

  it('its metrics page tells refused and deferred requests, and the tiers of cached tokens', () => {
    expect(signals(recording.page('adapter')).figures).toMatchObject({
      ...{ deferred: 0, refused: 0, externalQueries: 0, externalHits: 0 },
      cachedBySource: [expect.toSatisfy((tokens: number) => tokens > 0), 0, 0, 0],
    });
  });

  it('its metrics page names the adapters that it has room for', () => {
    expect(signals(recording.page('adapter')).adapters).toMatchObject({ max: 1 });
  });

  it('the blocks that its events tell are those that it takes from its cache', () => {
    const pool = eventPool(BLOCK_TOKENS);
    const stream = new EventStream(pool.blocks(), pool.counts);
    const compared: { what: string; cached: number; predicted: number }[] = [];
    for (const line of recording.stream('completions')) {
      if (line.kind === 'message') {
        const payload = Buffer.from(line.payload, 'base64');
        const { model } = topicParts(line.topic);
        if (stream.receive(line.number, payload, model).kind === 'gap') stream.giveUp(line.number);
        stream.receive(line.number, payload, model);
      } else {
        expect(line.tokens.length).toBe(line.promptTokens);
        // It computes the last token of a prompt anew, and with it the block that the token ends.
        const most = Math.floor((line.tokens.length - 1) / BLOCK_TOKENS);
        const predicted = Math.min(pool.matched(line.tokens, line.model)[0]!, most) * BLOCK_TOKENS;
        compared.push({ what: line.what, cached: line.cachedTokens, predicted });
      }
    }
    expect(pool.dropped()).toEqual({});
    expect(compared.length).toBe(6);
    // It tells of a cleared cache with the events of its next step.
    for (const { what, cached, predicted } of compared.slice(0, -1))
      expect({ what, cached }).toEqual({ what, cached: predicted });
    expect(compared.at(-1)!.cached).toBe(0);
  });

  it.each([
    ['completion', false],
    ['chat', false],
    ['completion_stream', true],
    ['chat_stream', true],
  ])('the usage of its answer is read: %s', (name, streaming) => {
    const pool = eventPool();
    const scanner = new ResponseScanner(pool.core);
    const scan = scanner.open({ streaming, form: AnswerForm.usage });
    scanner.feed(scan, Buffer.from(answers[name]!.text), true);
    const { promptTokens, completionTokens, cachedTokens } = scanner.usage(scan);
    scanner.close(scan);
    expect(promptTokens).toBeGreaterThan(BLOCK_TOKENS);
    expect(completionTokens).toBe(4);
    expect(cachedTokens % BLOCK_TOKENS).toBe(0);
  });

  it('its render server answers with token ids, and refuses where it was not asked to', () => {
    expect(renderedTokens(answers.render!.text).ids.length).toBeGreaterThan(0);
    expect(answers.render_refused).toMatchObject({ status: 403, text: expect.stringContaining('--enable-scale-out') });
  });

  it('it names the sockets of its events', () => {
    expect(JSON.parse(answers.kv_event_sources!.text)).toMatchObject({ '0': { publisher: 'zmq' } });
  });
});

describe('the table of docs/guides/engines.md', () => {
  const guide = readFileSync(new URL('../../docs/guides/engines.md', import.meta.url), 'utf8');
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

  it.each(recordedVersions('predictions.json'))(
    'the table of docs/guides/engines.md is that of the run: %s',
    (version) => {
      for (const row of new Recording(version).predictions()) {
        const lengths = row.plainError === 0 ? '–' : `${percent(row.plainError)}, ${percent(row.learnedError)}`;
        const hits = `${percent(row.predicted / row.prompt)} | ${percent(row.cached / row.prompt)}`;
        expect(guide).toContain(`| ${row.setting} | ${row.requests} | ${row.equal} | ${hits} | ${lengths} |`);
      }
    },
  );
});
