import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BrokenFile, readEndpointsFile } from '../../dist/src/pool/discovery/endpoints-file.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';

const read = (text: string) => readEndpointsFile(text, 'pool.yaml');
const entry = (fields: string) => `endpoints:\n- {name: first, address: 10.0.0.1, port: 1}\n- {${fields}}\n`;

describe('an endpoints file', () => {
  it('an endpoints file gives every endpoint an id from namespace and name, default namespace "default"', () => {
    const { endpoints, problems } = read(
      'endpoints:\n- name: a\n  address: 10.0.0.1\n  port: "8000"\n- {name: a, namespace: prod, address: 10.0.0.2, ' +
        'port: 8001, labels: {gpu: h100, rank: 1}}\n',
    );
    expect(problems).toEqual([]);
    expect(endpoints).toEqual([
      {
        id: 'default/a',
        name: 'a',
        namespace: 'default',
        host: { ip: '10.0.0.1' },
        port: 8000,
        labels: {},
        origin: 'pool.yaml:2: endpoints[0] "a"',
      },
      {
        id: 'prod/a',
        name: 'a',
        namespace: 'prod',
        host: { ip: '10.0.0.2' },
        port: 8001,
        labels: { gpu: 'h100', rank: '1' },
        origin: 'pool.yaml:5: endpoints[1] "a"',
      },
    ]);
  });

  it('an endpoints file may be JSON, indented by tabs', () => {
    const { endpoints } = read(JSON.stringify({ endpoints: [{ name: 'a', address: '::1', port: 1 }] }, null, '\t'));
    expect(endpoints.map(({ id, host }) => [id, host])).toEqual([['default/a', { ip: '::1' }]]);
  });

  const hosts: [string, object][] = [
    ['127.0.0.1', { ip: '127.0.0.1' }],
    ['::1', { ip: '::1' }],
    ['[2001:DB8:0::0001]', { ip: '2001:db8::1' }],
    ['localhost', { hostName: 'localhost' }],
    ['VLLM-0.vllm.svc.cluster.local.', { hostName: 'vllm-0.vllm.svc.cluster.local.' }],
    ['model_server', { hostName: 'model_server' }],
  ];
  for (const [address, host] of hosts) {
    it(`an endpoints file takes the address ${address}`, () => {
      expect(read(entry(`name: a, address: "${address}", port: 1`)).endpoints[1]?.host).toEqual(host);
    });
  }

  it('an endpoints file may be an empty pool', () => {
    expect(read('endpoints: []\n').endpoints).toEqual([]);
  });

  it('an endpoints file gives objectives their priorities', () => {
    const { objectives } = read(
      'endpoints: []\nobjectives:\n- {name: interactive, priority: 10}\n- {name: batch, priority: -5}\n',
    );
    expect([...objectives]).toEqual([
      ['interactive', 10],
      ['batch', -5],
    ]);
  });

  it('an endpoints file gives rewrites in their order, a rule without models being generic', () => {
    const { rewrites } = read(
      'endpoints: []\nrewrites:\n- {name: canary, models: [llama], targets: [{model: llama-a, weight: 9}, {model: ' +
        'llama-b, weight: 1}]}\n- {name: all, targets: [{model: llama}]}\n',
    );
    expect(rewrites).toEqual([
      {
        name: 'canary',
        models: ['llama'],
        targets: [
          { model: 'llama-a', weight: 9 },
          { model: 'llama-b', weight: 1 },
        ],
        age: 0,
      },
      { name: 'all', models: [], targets: [{ model: 'llama' }], age: 1 },
    ]);
  });

  const broken: [string, string, string][] = [
    ['endpoints: [\n', 'pool.yaml:2: not valid YAML or JSON', 'broken YAML'],
    ['{"endpoints": [}', 'pool.yaml:1: not valid YAML or JSON', 'broken JSON'],
    ['endpoints: 5\n', 'pool.yaml:1: endpoints: must be a list: write endpoints: [] for none', 'no list'],
    ['endpoints:\n', 'pool.yaml:1: endpoints: must be a list', 'a list under way'],
    ['', 'pool.yaml:1: must be a map', 'nothing'],
    ['- a\n', 'pool.yaml:1: must be a map', 'a list at the top'],
    ['objectives: []\n', 'pool.yaml:1: endpoints: is missing', 'no endpoints'],
    [
      'endpoints: []\nendpoint: []\n',
      'pool.yaml:2: endpoint: is unknown: the sections are endpoints, objectives, rewrites',
      'an unknown section',
    ],
    ['endpoints: []\nendpoints: []\n', 'not valid YAML or JSON: Map keys must be unique', 'a section twice'],
    ['endpoints: []\nobjectives: {a: 1}\n', 'pool.yaml:2: objectives: must be a list', 'objectives as a map'],
    ['endpoints: []\n---\nendpoints: []\n', 'not valid YAML', 'two documents'],
    [`endpoints: ${'['.repeat(100_000)}`, 'pool.yaml:1: ', 'depth without end'],
    [
      'a: &a ' +
        `[x,x,x,x,x,x,x,x,x]\n${[...'bcdefgh']
          .map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefgh'[i]}`)}]`)
          .join('\n')}\nendpoints: [*h]\n`,
      'pool.yaml:1: a: is unknown',
      'aliases that multiply',
    ],
    [
      'endpoints:\n- &a ' +
        `[x,x,x,x,x,x,x,x,x]\n${[...'bcdefgh']
          .map((c, i) => `- &${c} [${Array(9).fill(`*${'abcdefgh'[i]}`)}]`)
          .join('\n')}\n`,
      'pool.yaml:1: cannot be read',
      'aliases that multiply in the list',
    ],
  ];
  for (const [text, message, name] of broken) {
    it(`an endpoints file is refused as a whole in one line for ${name}`, () => {
      let caught: unknown;
      try {
        read(text);
      } catch (error) {
        caught = error;
      }
      expect(caught).toBeInstanceOf(BrokenFile);
      expect((caught as Error).message).toContain(message);
      expect((caught as Error).message).not.toContain('\n');
    });
  }

  const wrong: [string, string][] = [
    [
      'name: b, port: 80',
      'endpoints[1] "b": address: is missing: it must be an IPv4 address, an IPv6 address without zone, or a host name',
    ],
    ['address: 10.0.0.2, port: 80', 'endpoints[1]: name: is missing'],
    [
      'name: b, adress: 10.0.0.2, port: 80',
      'endpoints[1] "b": adress: is an unknown field: correct or remove it; did you mean "address"?',
    ],
    ['name: b, address: 10.0.0.2, port: 1e999', 'port: Infinity must be a whole number'],
    ['name: "", address: 10.0.0.2, port: 80', 'endpoints[1] "": name: "" must be 1 to 253 characters'],
    ['name: a/b, address: 10.0.0.2, port: 80', 'name: "a/b" must be 1 to 253 characters without blanks or "/"'],
    ['name: b, address: 10.0.0.2, port: x', 'endpoints[1] "b": port: "x" must be a whole number from 1 to 65535'],
    ['name: b, address: 10.0.0.2, port: 0', 'port: 0 must be'],
    ['name: b, address: 10.0.0.2, port: 65536', 'port: 65536 must be'],
    ['name: b, address: 10.0.0.2, port: 8000.5', 'port: 8000.5 must be'],
    ['name: b, address: 10.0.0.2', 'port: is missing: it must be a whole number'],
    ['name: b, address: 10.0.0.300, port: 1', 'address: "10.0.0.300" must be'],
    ['name: b, address: "fe80::1%eth0", port: 1', 'address: "fe80::1%eth0" must be'],
    ['name: b, address: "[10.0.0.1]", port: 1', 'address: "[10.0.0.1]" must be'],
    ['name: b, address: "http://x", port: 1', 'address: "http://x" must be'],
    ['name: b, address: 10.0.0.2:80, port: 1', 'address: "10.0.0.2:80" must be'],
    [
      'name: b, address: 10.0.0.2, port: 1, weight: 3',
      'endpoints[1] "b": weight: is an unknown field: correct or remove it',
    ],
    ['name: b, address: 10.0.0.2, port: 1, labels: [a]', 'labels: ["a"] must be a map of texts'],
    ['name: b, address: 10.0.0.2, port: 1, labels: {a: [b]}', 'labels.a: ["b"] must be a text'],
    ['name: first, address: 10.0.0.2, port: 1', 'endpoints[1] "first": "default/first" stands twice'],
  ];
  for (const [fields, problem] of wrong) {
    it(`an endpoints file leaves out the entry {${fields}} and says why`, () => {
      const { endpoints, problems } = read(entry(fields));
      expect(endpoints.map(({ name }) => name)).toEqual(['first']);
      expect(problems).toHaveLength(1);
      expect(problems[0]).toContain(problem);
      expect(problems[0]).toMatch(/^pool\.yaml:3: endpoints\[1\]/);
    });
  }

  it('an endpoints file names the line of the wrong field, not only that of the entry', () => {
    const { problems } = read('endpoints:\n- name: a\n  address: 10.0.0.1\n  port: none\n');
    expect(problems).toEqual(['pool.yaml:4: endpoints[0] "a": port: "none" must be a whole number from 1 to 65535']);
  });

  it('an endpoints file leaves out an entry that is no map', () => {
    expect(read('endpoints: [5]\n').problems).toEqual(['pool.yaml:1: endpoints[0]: must be a map of fields']);
  });

  const wrongElsewhere: [string, string][] = [
    ['objectives: [{name: a, priority: high}]', 'objectives[0] "a": priority: "high" must be a whole number'],
    ['objectives: [{name: a, priority: 1.5}]', 'priority: 1.5 must be a whole number'],
    ['objectives: [{name: a, priority: 1}, {name: a, priority: 2}]', 'objectives[1] "a": "a" stands twice'],
    ['rewrites: [{name: a}]', 'rewrites[0] "a": targets: is missing: it must be a list'],
    ['rewrites: [{name: a, targets: []}]', 'targets: [] must name at least one target'],
    [
      'rewrites: [{name: a, targets: [{model: m, weight: 0}]}]',
      'targets.0.weight: 0 must be a whole number from 1 to 1000000',
    ],
    ['rewrites: [{name: a, targets: [{model: m, weight: 1000001}]}]', 'targets.0.weight: 1000001 must be'],
    ['rewrites: [{name: a, targets: [{model: m, wait: 1}]}]', 'targets.0.wait: is an unknown field'],
    ['rewrites: [{name: a, models: m, targets: [{model: m}]}]', 'models: "m" must be a list of model names'],
  ];
  for (const [section, problem] of wrongElsewhere) {
    it(`an endpoints file leaves out what is wrong in ${section}`, () => {
      const { problems } = read(`endpoints: []\n${section}\n`);
      expect(problems).toHaveLength(1);
      expect(problems[0]).toContain(problem);
      expect(problems[0]).toMatch(/^pool\.yaml:2: /);
    });
  }

  it('an endpoints file never fails otherwise, whatever stands in it', () => {
    const value = fc.anything({ maxDepth: 2, withNullPrototype: false });
    const sections = fc.record(
      { endpoints: value, objectives: value, rewrites: value },
      { requiredKeys: ['endpoints'] },
    );
    const lists = fc.record({ endpoints: fc.array(value), objectives: fc.array(value), rewrites: fc.array(value) });
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.oneof(sections, lists).map((parts) => JSON.stringify(parts, (_, v) => (typeof v === 'bigint' ? 1 : v))),
    );
    fc.assert(
      fc.property(text, (content) => {
        try {
          for (const problem of read(content).problems) expect(problem).not.toContain('\n');
        } catch (error) {
          expect(error).toBeInstanceOf(BrokenFile);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('docs/discovery.md', () => {
  it('docs/discovery.md shows a file that is valid in every entry', () => {
    const page = readFileSync(new URL('../../docs/discovery.md', import.meta.url), 'utf8');
    const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    const { endpoints, objectives, rewrites, problems } = read(example);
    expect([endpoints.length, objectives.size, rewrites.length, problems]).toEqual([2, 2, 1, []]);
  });

  it('docs/discovery.md names every metric of every built-in engine', () => {
    const page = readFileSync(new URL('../../docs/discovery.md', import.meta.url), 'utf8');
    const engines = new EngineTable();
    for (const { name, wanted } of engines.all()) {
      for (const metric of wanted) expect(page, `${name}: ${metric.name}`).toContain(metric.name);
    }
  });
});
