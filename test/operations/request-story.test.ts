import { describe, expect, it } from 'vitest';
import type { DecisionColumns } from '../../dist/src/core/decision-columns.js';
import type { FoundSession } from '../../dist/src/core/found-session.js';
import { CORE, DecisionLog, DecisionTrail, PrefixIndex } from '../../dist/src/core/index.js';
import { isScorer, OPERATIONS, type Operation, type OperationName } from '../../dist/src/core/operations.js';
import { RequestStories } from '../../dist/src/operations/why/request-story.js';
import { SeriesLabels } from '../../dist/src/operations/why/series-labels.js';
import { shownSession } from '../../dist/src/operations/why/session-text.js';
import { whyText } from '../../dist/tools/why/why-text.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from '../core/pool.ts';

const SCORERS = (Object.keys(OPERATIONS) as OperationName[]).filter(isScorer);

/** Where stories of a pool come from, but for its profiles. */
function sources(pool: ReturnType<typeof makePool>) {
  return {
    log: new DecisionLog(pool.control),
    labels: new SeriesLabels(pool.control),
    endpointOf: String,
    room: () => ({ detector: 'utilization-detector', learns: false, saturation: () => 0 }),
    wallMs: (ms: number) => ms,
  };
}

/** What is told of the endpoint that a request went to. */
function endpointTold(operation: Operation) {
  const signals = { waiting: 3, refused: 2, running: 5, kvUsage: 0.25 };
  const pool = makePool([operation, pickMax], [signals], {
    ...smallSizes,
    decisions: 8,
    decisionThreads: 2,
    decisionColumnBytes: 65_536,
  });
  const trail = new DecisionTrail(pool.core, 1);
  const { table, decider } = pool;
  table.setAttribute(0, 0, 0.5);
  // A request in flight, with 40 tokens.
  decider.decide({ ...plainRequest, promptTokens: 40, charged: true });
  trail.begin('asked', true);
  decider.decide({ ...plainRequest, promptTokens: 1000 });
  const profiles = () => [{ name: 'default', operations: [{ ...operation, name: 'it' }] }];
  const stories = new RequestStories({ ...sources(pool), profiles });
  return stories.tell('asked')!.decisions[0]!.endpoints![0]!;
}

/** What is told of a scorer there. */
function told(operation: Operation) {
  return endpointTold(operation).scores[0]!;
}

describe('the story of a request', () => {
  it.each(SCORERS)('the story of a request shows what %s goes by', (code) => {
    const { signal } = told(scorer(code, 1, 0, 0, 0, 8));
    expect(signal?.name).toMatch(/^[a-zA-Z].+/);
    // Nothing was predicted for the request.
    if (code === 'OP_SCORE_LATENCY') expect(signal?.value).toBeNull();
    else expect(signal?.value).toEqual(expect.any(Number));
  });

  it.each([
    ['OP_SCORE_RUNNING', [], 'running requests', 5],
    ['OP_SCORE_LMETRIC', [], 'tokens in flight', 40],
    ['OP_SCORE_RENDEZVOUS', [0, 0, 0], 'requests in flight', 1],
    ['OP_SCORE_CONTEXT_LENGTH', [0], 'prompt tokens', 1000],
    ['OP_SCORE_ATTRIBUTE', [CORE.VALUE_RUNNING, 1, 1, 0, 0], 'running requests', 5],
    ['OP_SCORE_ATTRIBUTE', [CORE.VALUE_ACTIVE_TOKENS, 1, 1, 0, 0], 'tokens in flight', 40],
    ['OP_SCORE_ATTRIBUTE', [CORE.VALUE_ATTRIBUTE, 0, 0, 0, 2], 'attribute on its scale', 0.25],
  ] as const)('the story of a request shows the figure of %s %j', (code, parameters, name, value) => {
    expect(told({ code, weight: 1, parameters }).signal).toEqual({ name, value });
  });

  it('the story of a request shows the waiting count that decided, and the scraped one beside it', () => {
    expect(told(scorer('OP_SCORE_QUEUE', 1)).signal).toEqual({
      name: 'predicted waiting requests',
      value: 4,
      scraped: 3,
    });
  });

  it('the story of a request names the refusals of an engine beside the waiting requests that they are among', () => {
    expect(endpointTold(scorer('OP_SCORE_QUEUE', 1))).toMatchObject({ rank: 1, waiting: 3, refused: 2 });
  });

  it('the story of a request splits what endpoints held by tier', () => {
    const sizes = { ...smallSizes, decisions: 8, decisionThreads: 2, decisionColumnBytes: 65_536 };
    const pool = makePool([scorer('OP_SCORE_PREFIX', 1, 0, 0, 64), pickMax], [{}, {}], sizes);
    const index = new PrefixIndex(pool.core);
    index.setPrices({ host: 0.25, disk: 0.5, remote: 0.5 });
    const hash = () => pool.core.call.hashBlocks(10 * 256, 256);
    hash();
    index.store(1, undefined, 8, 'host');
    hash();
    index.store(1, undefined, 4, 'gpu');
    const trail = new DecisionTrail(pool.core, 1);
    trail.begin('asked', true);
    hash();
    pool.decider.decide({ ...plainRequest, blocks: 10, tail: false, promptTokens: 640 });
    const story = new RequestStories({ ...sources(pool), profiles: () => [] }).tell('asked')!;
    const [decision] = story.decisions;
    const held = { gpu: 256, host: 256, disk: 0, remote: 0 };
    expect(decision).toMatchObject({ matchedTokens: 448, heldTokens: held, chargedTokens: 192 });
    expect(decision!.endpoints!.map(({ heldTokens }) => heldTokens)).toEqual([held, null]);
    const text = whyText(story);
    expect(text).toContain('  held           256 GPU, 256 host memory');
    expect(text).toContain('448 tokens (256 GPU, 256 host memory)');
    const roomText = (closed: number) => whyText({ ...story, decisions: [{ ...decision!, closed }] });
    expect(roomText(1)).toContain('on 1 endpoint that may serve it');
    expect(roomText(2)).toContain('on 2 endpoints that may serve it');
  });

  it('the story of a held turn tells its session, how long it waited, what it needed and which rooms there were', () => {
    const found = {
      fate: 'given-up',
      byHeader: false,
      turns: 4,
      home: 2,
      idleMs: 38_000,
      keptMs: 31_300,
      tokens: 61_440,
      sharedTokens: 15_000,
      missedTokens: 46_440,
    } as const;
    const rooms = [21_000, 8_192, 44_000, undefined].map((roomTokens, slot) => ({
      slot,
      roomTokens,
      removed: 'session',
    }));
    const columns = { endpoints: rooms } as unknown as DecisionColumns;
    const around = { columns, endpointOf: (slot: number) => `server-${slot}`, held: true, heldMs: 12_400 };
    expect(shownSession(found, around)).toMatchObject({
      home: 'server-2',
      idleSeconds: 38,
      missed: { needTokens: 46_440, held: true, heldSeconds: 12.4, rooms: [21_000, 8_192, 44_000, null] },
      text:
        '4 turns, 61,440 tokens (15,000 shared), home server-2, lapsed after 38 s idle (kept up to 31.3 s); ' +
        'held 12.4 s: needs 46 k, rooms 21 k / 8,192 / 44 k / –',
    });
  });

  it.each([
    [{ fate: 'new' }, 'its first turn'],
    [{ fate: 'fork' }, 'its first turn, which goes on from a session with a turn in flight'],
    [{ fate: 'uncounted' }, 'not counted: as many sessions are known as can be, and none has lapsed'],
    [
      { fate: 'protected', byHeader: true },
      '1 turn, 640 tokens, home server-0, known by its header alone: its prompt begins otherwise, its place was kept ' +
        'for 2 s',
    ],
    [{ fate: 'protected' }, '1 turn, 640 tokens, home server-0, its place was kept for 2 s'],
    [
      { fate: 'forgotten', home: undefined },
      '1 turn, 640 tokens, its home has left, forgotten by the engine after 2 s idle',
    ],
    [
      { fate: 'given-up', missedTokens: 700 },
      '1 turn, 640 tokens, home server-0, lapsed after 2 s idle (always kept); no endpoint had room: needs 700',
    ],
  ] as const)('the story of a turn says of the session %j: %s', (given, text) => {
    const base = {
      byHeader: false,
      turns: 1,
      home: 0,
      idleMs: 2_000,
      keptMs: Number.POSITIVE_INFINITY,
      tokens: 640,
      sharedTokens: 0,
    };
    const found: FoundSession = { ...base, missedTokens: undefined, ...given };
    const around = {
      columns: undefined,
      endpointOf: (slot: number) => `server-${slot}`,
      held: false,
      heldMs: undefined,
    };
    expect(shownSession(found, around)!.text).toBe(text);
  });
});
