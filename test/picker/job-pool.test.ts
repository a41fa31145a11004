import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { JobPool } from '../../dist/src/picker/jobs/job-pool.js';
import { createFileDiscovery } from '../../dist/src/pool/discovery/file.js';

const entry = (i: number) => `- {name: server-${i}, address: 10.0.${i >> 8}.${i & 255}, port: "8000"}`;
const fileOf = (count: number) => `endpoints:\n${Array.from({ length: count }, (_, i) => entry(i)).join('\n')}\n`;

describe('job threads', () => {
  const jobs = new JobPool();
  afterEach(() => jobs.stop());

  it('job threads are not started for a small endpoints file', () => {
    expect(jobs.readEndpoints(fileOf(3), 'small.yaml')).toMatchObject({ endpoints: { length: 3 } });
    expect(jobs.threads).toBe(0);
  });

  it('job threads read a large endpoints file, while the control thread goes on', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-jobs-'));
    const path = join(folder, 'endpoints.yaml');
    writeFileSync(path, fileOf(2000));
    let turns = 0;
    const turning = setInterval(() => turns++, 1);
    const discovery = createFileDiscovery({ path, watch: false, read: (text, name) => jobs.readEndpoints(text, name) });
    const state = await discovery.start(
      () => {},
      () => {},
    );
    clearInterval(turning);
    await discovery.stop();
    rmSync(folder, { recursive: true });
    expect(state.endpoints).toHaveLength(2000);
    expect(jobs.threads).toBe(1);
    expect(turns).toBeGreaterThan(5);
  });

  it('job threads say what is wrong with a large file in the same words', async () => {
    const text = `${fileOf(1000)}- {name: broken, port: "80"}\n`;
    const read = async () => (await jobs.readEndpoints(text, 'large.yaml')).problems;
    expect(await read()).toEqual([expect.stringContaining('large.yaml:1002')]);
  });
});
