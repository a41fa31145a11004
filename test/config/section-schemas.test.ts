import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

/** Schemas that a process makes which reads this configuration. */
function schemasOf(configuration: string): number {
  const program = `
    import { z } from 'zod';
    let count = 0;
    z.config({ postProcessor: () => count++ });
    const { readVersioned } = await import('./dist/src/config/api-versions.js');
    const { ConfigurationDocument } = await import('./dist/src/config/document.js');
    readVersioned(ConfigurationDocument.ofFile(${JSON.stringify(configuration)}, 'file'));
    console.log(count);`;
  const cwd = new URL('../..', import.meta.url);
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd, encoding: 'utf8' }));
}

describe('the schemas of sections', () => {
  const bare = schemasOf('plugins: []\n');

  it.each([
    ['adaptation', 'adaptation: {}'],
    ['dataLayer', 'dataLayer: {}'],
    ['flowControl', 'flowControl: {}'],
    ['replication', "replication: {nats: 'nats://nats:4222'}"],
  ])('the schema of %s is made for a configuration that has it, and for no other', (_name, section) => {
    expect(schemasOf(`plugins: []\n${section}\n`)).toBeGreaterThan(bare + 10);
  });

  it('the schema of sessions is made for flow control that has them, and for no other', () => {
    const without = schemasOf('flowControl: {}\n');
    expect(schemasOf('flowControl: {sessions: {}}\n')).toBeGreaterThan(without + 20);
  });
});
