import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AdaptationSettings } from '../../dist/src/config/adaptation.js';
import { createLogger } from '../../dist/src/operations/log.js';
import { AdaptationControl } from '../../dist/src/picker/control/adaptation-control.js';
import type { ProgramVariant } from '../../dist/src/scheduling/program-variants.js';
import { usual } from '../adaptation/samples.ts';
import { makePool, pickMax, plainRequest, scorer } from '../core/pool.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pointsman-adaptation-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** A pool with an adaptation; `requests` finishes as many requests, each with 30 ms per thousand tokens. */
function controlled(settings: Partial<AdaptationSettings> = {}) {
  const pool = makePool([scorer('OP_SCORE_QUEUE'), pickMax], [{}, {}]);
  /** Warnings and errors, and what is told besides. */
  const lines: Record<string, unknown>[] = [];
  const told: string[] = [];
  const note = (_details: object, text: string) => lines.push({ text });
  const quiet = {
    ...createLogger({ level: 'silent' } as never),
    child: () => ({ info: (_details: object, text: string) => told.push(text), warn: note, error: note }),
  };
  const variants: ProgramVariant[] = [];
  const control = new AdaptationControl({
    core: pool.control,
    settings: { ...usual, stateFile: join(folder, 'learned.json'), ...settings },
    run: (variant) => variants.push(variant),
    slots: () => [0, 1],
    projected: () => [1],
    seed: 1n,
    now: () => 1000,
    log: quiet as never,
  });
  const requests = (count: number) => {
    for (let i = 0; i < count; i++) {
      const promptTokens = 500 + ((i * 997) % 8000);
      const { ticket, ticketGeneration } = pool.decider.decide({ ...plainRequest, promptTokens });
      pool.decider.noteSample(ticket, ticketGeneration, {
        outcome: 'completed',
        firstOutputMs: 40 + (30 * promptTokens) / 1000,
        perTokenMs: 20,
        durationMs: 2000,
        outputTokens: 100,
        promptTokens,
        cachedTokens: 0,
      });
      pool.decider.release(ticket, ticketGeneration);
    }
  };
  return { control, requests, variants, lines, told };
}

const prefill = ({ control }: ReturnType<typeof controlled>) => control.report().coefficients.prefillMsPerKiloToken;

describe('the learned state', () => {
  it('the learned state survives a restart in its file, which is replaced as a whole', async () => {
    const first = controlled();
    await first.control.start();
    first.requests(500);
    await first.control.stop();
    expect(Math.abs(prefill(first) / 30 - 1)).toBeLessThan(0.05);
    expect(await readdir(folder)).toEqual(['learned.json']);
    const second = controlled();
    await second.control.start();
    expect(Math.abs(prefill(second) / prefill(first) - 1)).toBeLessThan(0.02);
    expect([second.control.isUnused, second.control.use?.fileUnused]).toEqual([false, null]);
    await second.control.stop();
  });

  it('the learned state is not written again when nothing was learned since', async () => {
    const path = join(folder, 'learned.json');
    const first = controlled();
    await first.control.start();
    first.requests(50);
    await first.control.stop();
    const text = await readFile(path, 'utf8');
    const second = controlled();
    await second.control.start();
    await second.control.stop();
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  it('the learned state is learned anew, with a warning, when the file does not fit', async () => {
    await writeFile(join(folder, 'learned.json'), '{"version":99}');
    const all = controlled();
    await all.control.start();
    expect(prefill(all)).toBe(55);
    expect(all.lines.map(({ text }) => text)).toEqual([
      expect.stringContaining('it has version 99, and 1 or 2 is expected'),
    ]);
    expect(all.control.isUnused).toBe(true);
    expect(all.control.use?.fileUnused).toBe('it has version 99, and 1 or 2 is expected');
    await all.control.stop();
  });

  it('the learned state is told once not to be kept when the file cannot be written', async () => {
    const all = controlled({ stateFile: join(folder, 'no-such-folder', 'learned.json') });
    await all.control.start();
    all.requests(10);
    await all.control.stop();
    expect(all.lines.map(({ text }) => text)).toEqual([expect.stringContaining('cannot keep what was learned')]);
  });

  it('the learned state goes on through a change of the mode, and begins anew with other assumptions', async () => {
    const all = controlled({ stateFile: undefined });
    await all.control.start();
    all.requests(500);
    await all.control.stop();
    const learned = prefill(all);
    all.control.configure({ ...usual, mode: 'auto' });
    expect(Math.abs(prefill(all) / learned - 1)).toBeLessThan(0.02);
    const prior = { ...usual.model.prior, prefillMsPerKiloToken: 70 };
    all.control.configure({ ...usual, model: { ...usual.model, prior } });
    expect(prefill(all)).toBe(70);
  });
});

describe('what replicas tell each other of their learning', () => {
  it('a replica with few samples goes on from what another one has learned', async () => {
    const [first, second] = [controlled(), controlled({ stateFile: undefined })];
    await first.control.start();
    first.requests(500);
    await first.control.stop();
    second.control.hear(first.control.tell()!);
    expect(Math.abs(prefill(second) / prefill(first) - 1)).toBeLessThan(0.02);
    expect(second.told).toContain('takes over the learned state of a replica');
  });

  it('a replica with as many samples keeps what it has learned itself', async () => {
    const [first, second] = [controlled({ stateFile: undefined }), controlled({ stateFile: undefined })];
    for (const each of [first, second]) {
      await each.control.start();
      each.requests(300);
      await each.control.stop();
    }
    second.control.hear(first.control.tell()!);
    expect(second.told).not.toContain('takes over the learned state of a replica');
  });

  it('a replica goes on from what replicas that have all ended had learned, unless it has learned itself', async () => {
    const [first, second, third] = [
      controlled(),
      controlled({ stateFile: undefined }),
      controlled({ stateFile: undefined }),
    ];
    for (const each of [first, third]) {
      await each.control.start();
      each.requests(500);
      await each.control.stop();
    }
    second.control.restoreLearned(first.control.kept()!);
    third.control.restoreLearned(first.control.kept()!);
    expect(Math.abs(prefill(second) / prefill(first) - 1)).toBeLessThan(0.02);
    expect(third.told).not.toContain('goes on from what replicas have learned before');
    expect(controlled({ stateFile: undefined }).control.kept()).toBeUndefined();
  });

  it('a replica that has learned nothing tells nothing, and nonsense is refused with a warning', () => {
    const { control, lines } = controlled({ stateFile: undefined });
    expect(control.tell()).toBeUndefined();
    control.hear(new TextEncoder().encode('{"samples": 1e9, "state": "{}"}'));
    expect(lines).toEqual([{ text: expect.stringContaining('the learned state of a replica is not used') }]);
  });
});

describe('the log', () => {
  it('the log says at the start who decides, and where to look', async () => {
    const all = controlled({ mode: 'auto', stateFile: undefined });
    await all.control.start();
    await all.control.stop();
    expect(all.told).toEqual([
      expect.stringContaining('until learned costs are found no worse (GET /debug/adaptation)'),
    ]);
  });
});

describe('the programs', () => {
  it.each([
    ['off', { kind: 'configured', tag: 0 }],
    ['shadow', { kind: 'observed', tag: 1, projects: false }],
    ['auto', { kind: 'observed', tag: 1, projects: false }],
    ['always', { kind: 'learned', tag: 1 }],
  ] as const)('the programs begin in mode %s as %o', (mode, variant) => {
    expect(controlled({ mode }).variants).toEqual([variant]);
  });

  it('the programs have other weights when costs drive through the scorers of the profile', () => {
    expect(controlled({ mode: 'always', drive: 'weights' }).variants).toEqual([
      { kind: 'projected', tag: 1, weights: [1] },
    ]);
  });
});
