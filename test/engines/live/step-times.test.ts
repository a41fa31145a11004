import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { PYTHON, skipReason, TINY_MODEL } from '../vllm.ts';

const script = (name: string) => fileURLToPath(new URL(`../../../scripts/${name}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'step-times-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(skipReason !== '')(`the step times of a real transformer${skipReason}`, () => {
  it('the step times of a real transformer are measured and fitted by two commands', () => {
    const config = join(TINY_MODEL, 'config.json');
    const options = ['--device', 'cpu', '--dtype', 'float32', '--small'];
    execFileSync(PYTHON, [script('measure-step-times.py'), config, folder, ...options], {
      env: { ...process.env, OMP_NUM_THREADS: '1' },
    });
    const text = execFileSync(process.execPath, [script('fit-step-time.ts'), folder, '--layers', '2'], {
      encoding: 'utf8',
    });
    const { constants } = JSON.parse(text) as { readonly constants: Readonly<Record<string, number>> };
    expect(Object.entries(constants).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
    expect(constants.tokenUs).toBeGreaterThan(0);
  }, 300_000);
});
