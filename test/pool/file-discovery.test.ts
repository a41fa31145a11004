import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PoolState } from '../../dist/src/contract/endpoint.js';
import { createFileDiscovery, type FileDiscoveryOptions } from '../../dist/src/pool/discovery/file.js';
import { chooseAddress } from '../../dist/src/pool/discovery/host-names.js';

let directory = '';
let file = '';
const cleanups: (() => unknown)[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'discovery-'));
  file = join(directory, 'endpoints.yaml');
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  rmSync(directory, { recursive: true, force: true });
});

const entry = (name: string, address = '10.0.0.1') => `- {name: ${name}, address: ${address}, port: 8000}\n`;
const pool = (...names: string[]) => `endpoints:\n${names.map((name) => entry(name)).join('')}`;
const names = (state: PoolState | undefined) => state?.endpoints.map(({ name }) => name);

/** A started discovery whose changes and reports can be waited for. */
async function discover(options: Partial<FileDiscoveryOptions> = {}) {
  const discovery = createFileDiscovery({ path: file, watch: true, settleMs: 5, pollMs: 20, ...options });
  cleanups.push(() => discovery.stop());
  const states: PoolState[] = [];
  const reports: string[] = [];
  const waiters: (() => void)[] = [];
  const wake = () => {
    for (const waiter of waiters.splice(0)) waiter();
  };
  const first = await discovery.start(
    (state) => {
      states.push(state);
      wake();
    },
    (problem) => {
      reports.push(problem);
      wake();
    },
  );
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  return { discovery, first, states, reports, until };
}

describe('file discovery at start', () => {
  it('file discovery at start gives the pool as the file says', async () => {
    writeFileSync(file, `${pool('a', 'b')}objectives: [{name: batch, priority: -1}]\n`);
    const { first } = await discover({ watch: false });
    expect(first.endpoints[0]).toEqual({
      id: 'default/a',
      name: 'a',
      namespace: 'default',
      address: '10.0.0.1',
      port: 8000,
      labels: {},
    });
    expect([names(first), first.objectives.get('batch')]).toEqual([['a', 'b'], -1]);
  });

  it('file discovery at start takes an empty pool', async () => {
    writeFileSync(file, 'endpoints: []\n');
    expect((await discover()).first.endpoints).toEqual([]);
  });

  const unusable: [string, () => void, RegExp][] = [
    ['a missing file', () => {}, /endpoints\.yaml: does not exist: create it or correct the path$/],
    ['a directory', () => mkdirSync(file), /is a folder: name a file$/],
    [
      'a file above 1 MiB',
      () => writeFileSync(file, `#${' '.repeat(1024 * 1024)}\nendpoints: []\n`),
      /at most 1048576 are read: is it the right file\?$/,
    ],
    [
      'bytes that are no UTF-8',
      () => writeFileSync(file, Buffer.from([0x65, 0xff, 0xfe])),
      /is not UTF-8 text: save it as such, or correct the path$/,
    ],
    ['a broken file', () => writeFileSync(file, 'endpoints: [\n'), /:2: not valid YAML or JSON/],
    [
      'a wrong entry',
      () => writeFileSync(file, `${pool('a')}- {name: b, port: 1}\n`),
      /:3: endpoints\[1\] "b": address: is missing/,
    ],
    ['several wrong entries', () => writeFileSync(file, 'endpoints: [1, 2, 3]\n'), /endpoints\[0\].*\(and 2 more\)$/],
  ];
  for (const [name, prepare, message] of unusable) {
    it(`file discovery at start refuses ${name} in one line`, async () => {
      prepare();
      await expect(discover()).rejects.toThrow(message);
    });
  }

  it('file discovery at start takes a file of exactly 1 MiB', async () => {
    const text = pool('a');
    writeFileSync(file, `${text}#${'x'.repeat(1024 * 1024 - text.length - 1)}`);
    expect(names((await discover()).first)).toEqual(['a']);
  });
});

describe('file discovery that watches', () => {
  it('file discovery that watches applies a file that was renamed over the old one', async () => {
    writeFileSync(file, pool('a'));
    const { states, until } = await discover({ pollMs: 60_000 });
    for (const name of ['b', 'c', 'd']) {
      writeFileSync(`${file}.new`, pool('a', name));
      renameSync(`${file}.new`, file);
      await until(() => names(states.at(-1))?.[1] === name);
    }
  });

  it('file discovery that watches applies writes in place, the last one always', async () => {
    writeFileSync(file, pool('a'));
    const { states, until } = await discover({ pollMs: 60_000 });
    for (let i = 0; i < 20; i += 1) {
      writeFileSync(file, pool(`n${i}`));
      if (i % 5 === 0) await until(() => names(states.at(-1))?.[0] === `n${i}`);
    }
    await until(() => names(states.at(-1))?.[0] === 'n19');
  });

  it('file discovery that watches keeps the pool of a deleted file, says so, and applies it when back', async () => {
    writeFileSync(file, pool('a'));
    const { states, reports, until } = await discover();
    unlinkSync(file);
    await until(() => reports.length > 0);
    expect(reports[0]).toMatch(/does not exist.*the endpoints stay as they were$/);
    writeFileSync(file, pool('b'));
    await until(() => states.length > 0);
    expect([states.map(names), reports.length]).toEqual([[['b']], 1]);
  });

  it('file discovery that watches follows the links of a mounted ConfigMap', async () => {
    const publish = (version: string, text: string) => {
      mkdirSync(join(directory, version));
      writeFileSync(join(directory, version, 'endpoints.yaml'), text);
      symlinkSync(version, join(directory, '..data_tmp'));
      renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    };
    publish('..v1', pool('a'));
    symlinkSync('..data/endpoints.yaml', file);
    const { first, states, until } = await discover({ pollMs: 60_000 });
    expect(names(first)).toEqual(['a']);
    publish('..v2', pool('b'));
    await until(() => names(states.at(-1))?.[0] === 'b');
  });

  it('file discovery that watches sees by polling what gives no event: a change behind a link', async () => {
    mkdirSync(join(directory, 'elsewhere'));
    const target = join(directory, 'elsewhere', 'pool.yaml');
    writeFileSync(target, pool('a'));
    symlinkSync(target, file);
    const { states, until } = await discover();
    writeFileSync(target, pool('b'));
    await until(() => names(states.at(-1))?.[0] === 'b');
  });

  it('file discovery that watches sees a change that leaves size and time of the file as they were', async () => {
    const time = new Date();
    mkdirSync(join(directory, 'elsewhere'));
    const target = join(directory, 'elsewhere', 'pool.yaml');
    writeFileSync(target, pool('a'));
    utimesSync(target, time, time);
    symlinkSync(target, file);
    const { states, until } = await discover();
    writeFileSync(target, pool('b'));
    utimesSync(target, time, time);
    await until(() => names(states.at(-1))?.[0] === 'b');
  });

  it('file discovery that watches survives the replacement of the whole directory', async () => {
    const inner = join(directory, 'inner');
    mkdirSync(inner);
    const path = join(inner, 'endpoints.yaml');
    writeFileSync(path, pool('a'));
    const { states, until } = await discover({ path });
    rmSync(inner, { recursive: true });
    mkdirSync(inner);
    writeFileSync(path, pool('b'));
    await until(() => names(states.at(-1))?.[0] === 'b');
    writeFileSync(path, pool('c'));
    await until(() => names(states.at(-1))?.[0] === 'c');
  });

  it('file discovery that watches keeps the pool when the new file is broken, and reports it once', async () => {
    writeFileSync(file, pool('a'));
    const { states, reports, until } = await discover();
    writeFileSync(file, 'endpoints: [\n');
    await until(() => reports.length > 0);
    writeFileSync(file, pool('a', 'b'));
    await until(() => states.length > 0);
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatch(/not valid YAML.*the endpoints stay as they were$/);
    expect(states.map(names)).toEqual([['a', 'b']]);
  });

  it('file discovery that watches applies the good entries and names the bad ones', async () => {
    writeFileSync(file, pool('a'));
    const { states, reports, until } = await discover();
    writeFileSync(
      file,
      `${pool('a', 'b')}- {name: bad-port, address: 10.0.0.3, port: x}\n- {address: 10.0.0.4, port: 80}\n`,
    );
    await until(() => states.length > 0);
    expect(names(states[0])).toEqual(['a', 'b']);
    expect(reports).toHaveLength(2);
    expect(reports[0]).toContain('"bad-port": port: "x"');
    expect(reports[1]).toContain('endpoints[3]: name: is missing');
  });

  it('file discovery that watches reports at most 20 bad entries one by one, the rest as a number', async () => {
    writeFileSync(file, pool('a'));
    const { states, reports, until } = await discover();
    writeFileSync(file, `${pool('b')}${'- 5\n'.repeat(50)}`);
    await until(() => states.length > 0);
    expect(reports).toHaveLength(21);
    expect(reports[20]).toContain('30 more entries');
  });

  it('file discovery that watches reports the 21st bad entry as one more', async () => {
    writeFileSync(file, pool('a'));
    const { states, reports, until } = await discover();
    writeFileSync(file, `${pool('b')}${'- 5\n'.repeat(21)}`);
    await until(() => states.length > 0);
    expect(reports[20]).toMatch(/: also left out: 1 more entry$/);
  });

  it('file discovery that watches gives no new state when a new file says the same', async () => {
    writeFileSync(file, pool('a'));
    const { states, reports, until } = await discover();
    // The entry that is left out shows that the file was read.
    writeFileSync(file, `# a comment\n${pool('a')}- 5\n`);
    await until(() => reports.length > 0);
    writeFileSync(file, pool('b'));
    await until(() => states.length > 0);
    expect(states.map(names)).toEqual([['b']]);
  });

  it('file discovery that watches does not read again without watch, nor after stop', async () => {
    writeFileSync(file, pool('a'));
    const still = await discover({ watch: false });
    const stopped = await discover();
    await stopped.discovery.stop();
    const watching = await discover();
    writeFileSync(file, pool('b'));
    await watching.until(() => watching.states.length > 0);
    expect([still.states, stopped.states]).toEqual([[], []]);
  });
});

describe('host names in the file', () => {
  const addresses = (state: PoolState | undefined) => state?.endpoints.map(({ name, address }) => `${name} ${address}`);
  const text = `endpoints:\n${entry('a', 'one.example')}${entry('b', 'two.example')}`;

  it('host names in the file are resolved, each to one address', async () => {
    writeFileSync(file, text);
    const resolve = async (host: string) => (host === 'one.example' ? ['::2', '10.0.0.9', '10.0.0.10'] : ['10.0.0.2']);
    expect(addresses((await discover({ resolve })).first)).toEqual(['a 10.0.0.10', 'b 10.0.0.2']);
  });

  it('host names in the file use the hosts of the system by default', async () => {
    writeFileSync(file, `endpoints:\n${entry('a', 'localhost')}`);
    expect((await discover()).first.endpoints[0]?.address).toMatch(/^(127\.0\.0\.1|::1)$/);
  });

  it('host names in the file that do not resolve are reported, left out, and tried again', async () => {
    writeFileSync(file, text);
    let known = false;
    const resolve = async (host: string) => {
      if (host === 'one.example' && !known) throw new Error('getaddrinfo ENOTFOUND one.example');
      return ['10.0.0.2'];
    };
    const { first, states, reports, until } = await discover({ resolve, retryMs: 5, watch: false });
    expect(addresses(first)).toEqual(['b 10.0.0.2']);
    expect(reports).toEqual([
      `${file}:2: endpoints[0] "a": address: "one.example" does not resolve (getaddrinfo ENOTFOUND one.example); ` +
        'it is left out until it does',
    ]);
    known = true;
    await until(() => states.length > 0);
    expect(addresses(states[0])).toEqual(['a 10.0.0.2', 'b 10.0.0.2']);
  });

  it('host names in the file are resolved anew, and keep their address while they do not resolve', async () => {
    writeFileSync(file, `endpoints:\n${entry('a', 'one.example')}`);
    let answer: () => string[] = () => ['10.0.0.1'];
    const { states, reports, until } = await discover({ resolve: async () => answer(), refreshMs: 5, watch: false });
    answer = () => {
      throw new Error('SERVFAIL');
    };
    await until(() => reports.length > 0);
    expect(reports[0]).toMatch(/"one.example" does not resolve \(SERVFAIL\); 10.0.0.1 stays until it does again$/);
    answer = () => ['10.0.0.8'];
    await until(() => states.length > 0);
    expect([addresses(states[0]), reports.length]).toEqual([['a 10.0.0.8'], 1]);
  });

  it('host names in the file that a new file brings are resolved before it applies', async () => {
    writeFileSync(file, pool('x'));
    const { states, until } = await discover({ resolve: async () => ['10.0.0.5'] });
    writeFileSync(file, text);
    await until(() => states.length > 0);
    expect(states.map(addresses)).toEqual([['a 10.0.0.5', 'b 10.0.0.5']]);
  });

  it('host names in the file do not hold up the start when the resolver is silent', async () => {
    writeFileSync(file, `${text}${entry('c')}`);
    const answers: (() => void)[] = [];
    const resolve = () => new Promise<string[]>((done) => answers.push(() => done(['10.0.0.6'])));
    const { first, states, reports, until } = await discover({ resolve, patienceMs: 10, watch: false });
    expect([addresses(first), reports.length]).toEqual([['c 10.0.0.1'], 2]);
    expect(reports[0]).toContain('"one.example" does not resolve (no answer yet)');
    for (const answer of answers) answer();
    await until(() => names(states.at(-1))?.length === 3);
  });
});

describe('chooseAddress', () => {
  it('chooseAddress keeps the address in use as long as it is an answer', () => {
    expect(chooseAddress(['10.0.0.1', '10.0.0.2'], '10.0.0.2')).toBe('10.0.0.2');
    expect(chooseAddress(['10.0.0.3', '10.0.0.1'], '10.0.0.2')).toBe('10.0.0.1');
  });

  it('chooseAddress takes IPv4 before IPv6, whatever the order of the answer', () => {
    expect([chooseAddress(['::1', '127.0.0.1'], undefined), chooseAddress(['127.0.0.1', '::1'], undefined)]).toEqual([
      '127.0.0.1',
      '127.0.0.1',
    ]);
    expect(chooseAddress([], undefined)).toBeUndefined();
  });
});
