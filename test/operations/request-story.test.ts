import { describe, expect, it } from 'vitest';
import { CORE, DecisionLog, DecisionTrail, PrefixIndex } from '../../dist/src/core/index.js';
import { isScorer, OPERATIONS, type Operation, type OperationName } from '../../dist/src/core/operations.js';
import { RequestStories } from '../../dist/src/operations/why/request-story.js';
import { SeriesLabels } from '../../dist/src/operations/why/series-labels.js';
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
  });
});
