import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CONTROL_HEADERS } from '../../dist/src/request/control-headers.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = (path: string) => readFileSync(join(root, path), 'utf8');
const SECURITY = text('SECURITY.md');

/** Headers of the set that no client gains anything by: they go to clients, or the proxy's metadata say the same. */
const WITHOUT_EFFECT = [
  'x-gateway-destination-endpoint-subset',
  'x-gateway-destination-endpoint-served',
  'x-llm-d-request-dropped-reason',
  'x-pointsman-queue-info',
];

/** The newer name of a header. */
const newer = (name: string) =>
  name.replace(/^x-gateway-(?!destination)/, 'x-llm-d-').replace(/^x-slo-/, 'x-llm-d-slo-');

describe.each(['SECURITY.md', 'docs/stability.md', 'docs/upgrading.md'])('%s', (page) => {
  it('the page names only flags that exist', () => {
    const known = text('docs/reference/flags.md');
    const named = [...text(page).matchAll(/`(--[a-z][a-z-]+)/g)].map(([, name]) => name!);
    const ofCommands = ['--config', '--trace', '--json', '--pools', '--version', '--envoy', '--plugin'];
    expect(named.filter((name) => !known.includes(`\`${name}`) && !ofCommands.includes(name))).toEqual([]);
  });
});

describe('the table of headers in SECURITY.md', () => {
  const section = SECURITY.slice(SECURITY.indexOf('### Headers of clients'), SECURITY.indexOf('### What is kept'));
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const listed = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));

  it('the table has every header of a client that the picker acts on', () => {
    const acted = [...CONTROL_HEADERS].filter((name) => !WITHOUT_EFFECT.includes(name)).map(newer);
    expect([...new Set(acted)].filter((name) => !listed.includes(name))).toEqual([]);
  });

  it('the headers that clients gain nothing by are headers of the picker', () => {
    expect(WITHOUT_EFFECT.filter((name) => !CONTROL_HEADERS.has(name))).toEqual([]);
  });
});
