import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../dist/src/config/default-configuration.js';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { ask, type FileEndpoint, metric, Setting, startPicker } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { skipReason, startChromium } from './chromium.ts';

const cleanups: (() => unknown)[] = [];
let browser: Browser;

beforeAll(async () => {
  if (skipReason === '') browser = await startChromium();
});
afterAll(() => browser?.close());
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Endpoints where nobody listens: their signals stay unknown. */
function endpoints(count: number): FileEndpoint[] {
  return Array.from({ length: count }, (_, i) => ({ name: `server-${i}`, port: 22_001 + i }));
}

/** A profile of the endpoints of this tier. */
const tier = (name: string) => `plugins:
- {type: label-selector-filter, name: tier, parameters: {matchLabels: {tier: ${name}}}}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: tier}, {pluginRef: max-score-picker}]
`;

/** A picker that sends all requests to one endpoint, and a candidate that would send them to the other. */
async function serveBesideCandidate() {
  const [one, other] = endpoints(2);
  const pair = [
    { ...one!, labels: { tier: 'one' } },
    { ...other!, labels: { tier: 'other' } },
  ];
  const setting = await Setting.create(pair, tier('one'));
  cleanups.push(() => setting.remove());
  const file = `${setting.folder}/candidate.yaml`;
  await writeFile(file, `apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n${tier('other')}`);
  const { picker, ports } = await startPicker([...setting.flags, `--candidate-config=${file}`]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  return { client, url: `http://127.0.0.1:${ports.metricsPort}/ui/` };
}

async function serve(count: number, ...flags: string[]) {
  const setting = await Setting.create(endpoints(count), `plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--decision-columns-every=1', ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  return { client, url: `http://127.0.0.1:${ports.metricsPort}/ui/`, stop: () => picker.stop(0) };
}

/** An engine of which only the metrics page is there: nothing waits, and this share of its KV cache is in use. */
async function engineWithUsage(name: string, usage: number): Promise<FileEndpoint> {
  const page = `vllm:num_requests_waiting 0\nvllm:num_requests_running 0\nvllm:kv_cache_usage_perc ${usage}\n`;
  const server = createServer((_, answer) => answer.end(page)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return { name, port: (server.address() as AddressInfo).port };
}

/** Filters that hold endpoints back, in front of the default's scorers. */
const HOLDING_BACK = `plugins:
- {type: warm-up-filter, parameters: {maxLostTokens: 0}}
- {type: overload-filter, parameters: {maxKvCacheUsage: 0.9}}
- {type: prefix-cache-scorer}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: warm-up-filter}
  - {pluginRef: overload-filter}
  - {pluginRef: prefix-cache-scorer}
`;

/** What an engine tells of its cache. */
const CACHED = ',"prompt_tokens_details":{"cached_tokens":640}';

/** A request that an endpoint answers with this status. */
async function answered(client: ProxyClient, id: string, status = '200', details = CACHED) {
  const call = ask(client, 'a prompt of the page '.repeat(200), { 'x-request-id': id });
  decodeReply(await firstReply(call));
  call.write(responseHeaders({ ':status': status, 'content-type': 'text/event-stream' }));
  const usage = `{"prompt_tokens":1000,"completion_tokens":3${details}}`;
  call.write(responseBody(`data: {"choices":[]}\n\ndata: {"choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`, true));
  call.end();
}

/** Opens the page; whatever the browser complains about fails the test. */
async function open(url: string, width = 1280, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const complaints: string[] = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  cleanups.push(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });
  await page.goto(url);
  await page.locator('#endpoints-body').locator(':scope > *').first().waitFor();
  return page;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** All that axe objects to, each with its elements. */
async function violations(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  return page.evaluate<readonly string[]>(
    'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => ' +
      'id + ": " + nodes.map(({ target, failureSummary }) => target + " " + failureSummary).join()))',
  );
}

/** A picker that holds turns, and an engine whose cache holds 4,096 tokens. */
async function serveSessions() {
  const server = await startModelServer({ name: 'server-0', engine: { blocks: 256 } });
  cleanups.push(() => server.stop());
  const profile =
    'featureGates: [flowControl]\nplugins:\n- {type: prefix-cache-scorer}\n' +
    'schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]\n' +
    'flowControl: {defaultRequestTTL: 600s, sessions: {mode: on}}\n';
  const setting = await Setting.create([{ name: 'server-0', port: server.port }], profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const size = async () =>
    (await metric(ports.metricsPort, 'llm_d_epp_thunder_agent_endpoint_capacity_tokens', 'endpoint="server-0"')) ?? 0;
  await eventually('the size of the cache is known', async () => (await size()) > 0);
  // Until the next tick, 0.5 s at most, the room of a cache that was not known is without a bound.
  await pause(1_000);
  return { client, url: `http://127.0.0.1:${ports.metricsPort}/ui/` };
}

/** A turn of an agent; its engine tells no sizes. */
async function turn(client: ProxyClient, prompt: string) {
  const call = ask(client, prompt);
  decodeReply(await firstReply(call));
  call.write(responseHeaders({ ':status': '200' }));
  call.write(responseBody('{}', true));
  call.end();
}

const textOf = (page: Page, selector: string) => page.locator(selector).innerText();

describe.skipIf(skipReason !== '')(`the page in Chromium${skipReason}`, () => {
  it('a pool without endpoints or requests says so in words', async () => {
    const { url } = await serve(0);
    const page = await open(url);
    expect(await textOf(page, '#endpoints')).toContain('No endpoints. Discovery has found none yet');
    expect(await textOf(page, '#figures')).toMatch(/Endpoints\s+0\s+none found/);
    expect(await textOf(page, '#decisions')).toContain('No decision yet');
    expect(await textOf(page, '#queues')).toContain('Flow control is off');
    await page.locator('#configuration-body', { hasText: 'file-discovery' }).waitFor({ state: 'attached' });
  });

  it('sessions of agents: what they need of each cache, and the turns that are held, without a complaint of axe', async () => {
    const { client, url } = await serveSessions();
    for (const name of ['first', 'second']) await turn(client, `${name} agent `.repeat(640));
    // Beside the two, the cache has no room for a third one.
    ask(client, 'third agent '.repeat(640));
    const page = await open(url);
    await page.locator('#sessions-text', { hasText: '1 agent waits for KV room' }).waitFor();
    const queues = await textOf(page, '#queues');
    expect(queues).toMatch(/KV cache that sessions need[\s\S]*server-0\s+9\d %/);
    expect(queues).toMatch(/Turns that are held[\s\S]*tokens/);
    expect(await page.locator('.kv').getAttribute('aria-label')).toMatch(/^9\d % in use, 9\d % of it protected$/);
    expect(await violations(page)).toEqual([]);
  });

  it('figures, cache and endpoints follow the requests', async () => {
    const { client, url } = await serve(1);
    const page = await open(url);
    for (let i = 0; i < 5; i++) await answered(client, `page-${i}`);
    await page.locator('#figures', { hasText: '64 %' }).waitFor();
    expect(await textOf(page, '#endpoints-body')).toMatch(/server-0[\s\S]*unknown/);
    expect(await textOf(page, '#cache-body')).toContain('new text, seen for the first time');
    expect(await page.locator('#chart-hit').getAttribute('aria-label')).toBe(
      'Prompt tokens served from cache: now 64 %',
    );
  });

  it('engines that do not tell of their cache: the expected part is shown, and said to be that', async () => {
    const { client, url } = await serve(1);
    const page = await open(url);
    for (let i = 0; i < 5; i++) await answered(client, `untold-${i}`, '200', '');
    await page.locator('#figures', { hasText: 'expected: engines do not tell' }).waitFor();
    await page.locator('#chart-hit[aria-label*=" %"]').waitFor();
    expect(await textOf(page, '#figures')).toMatch(/Served from cache\s+\d+ %/);
  });

  it('the chart of adaptation has observed times beside predicted ones, and the table who decided', async () => {
    const { client, url } = await serve(1);
    const page = await open(url);
    for (let i = 0; i < 5; i++) await answered(client, `learned-${i}`);
    await page.locator('#chart-predicted[aria-label*=" ms and "]').waitFor();
    expect(await textOf(page, '#adaptation-body')).toMatch(/learned costs\s+0 %[\s\S]*configured weights\s+100 %/);
  });

  it('the names of objectives stand beside their priority', async () => {
    const setting = await Setting.create([]);
    cleanups.push(() => setting.remove());
    await setting.writeEndpoints(endpoints(1), 'objectives: [{name: interactive, priority: 10}]\n');
    const { picker, ports } = await startPicker([...setting.flags]);
    cleanups.push(() => picker.stop(0));
    const client = dialPicker(ports.grpcPort);
    cleanups.push(() => client.close());
    const page = await open(`http://127.0.0.1:${ports.metricsPort}/ui/`);
    await page.locator('#endpoints-body', { hasText: 'server-0' }).waitFor();
    const call = ask(client, 'a prompt', { 'x-gateway-inference-objective': 'interactive' });
    await firstReply(call);
    await page.locator('#traffic-body th', { hasText: '10 interactive' }).waitFor();
  });

  it('the keyboard opens the reason of a decision, and the address keeps it', async () => {
    const { client, url } = await serve(2);
    await answered(client, 'asked-by-key');
    const page = await open(url);
    await page.locator('#decisions-body button').first().focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog h3').waitFor();
    const text = await textOf(page, 'dialog');
    expect(text).toContain('Why request asked-by-key went there');
    expect(text).toMatch(/prefix-cache-scorer ×3/);
    expect(text).toContain('picked');
    expect(page.url()).toBe(`${url}#why=asked-by-key`);
    await page.keyboard.press('Escape');
    expect(await page.locator('dialog[open]').count()).toBe(0);
    const shared = await open(`${url}#why=asked-by-key`);
    await shared.locator('dialog h3').waitFor();
  });

  it('one of several pools is chosen in the head, and shown from then on', async () => {
    const setting = await Setting.create(endpoints(1));
    cleanups.push(() => setting.remove());
    await writeFile(`${setting.folder}/pools.yaml`, 'pools: [{name: second, endpointsFile: second.yaml}]');
    await writeFile(`${setting.folder}/second.yaml`, 'endpoints: [{name: other, address: 127.0.0.1, port: "22099"}]');
    const { picker, ports } = await startPicker([...setting.flags, `--pools=${setting.folder}/pools.yaml`]);
    cleanups.push(() => picker.stop(0));
    const page = await open(`http://127.0.0.1:${ports.metricsPort}/ui/`);
    expect(await textOf(page, '#endpoints-body')).toContain('server-0');
    await page.locator('#pool-choice').selectOption('second');
    await page.locator('#endpoints-body', { hasText: 'other' }).waitFor();
    expect(page.url()).toContain('?pool=second');
    expect(await page.locator('#pool-choice').inputValue()).toBe('second');
  });

  it('a candidate configuration is compared with the running one', async () => {
    const { client, url } = await serveBesideCandidate();
    const page = await open(url);
    await page.locator('#candidate', { hasText: 'It has decided nothing yet' }).waitFor();
    for (let i = 0; i < 3; i++) await answered(client, `compared-${i}`);
    await page.locator('#candidate tbody td', { hasText: /^3$/ }).waitFor();
    expect(await textOf(page, '#candidate')).toMatch(
      /candidate\.yaml decides every request[\s\S]*Other picks for 100\.0 % of the requests, at a predicted cost of \d+\.\d{3} instead/,
    );
    expect(await textOf(page, '#candidate tbody')).toMatch(/^none\s+3\s+100\.0 %\s+\d+\.\d{3} → \d+\.\d{3}\s+0$/);
  });

  it('the section of the candidate configuration is not there without one', async () => {
    const { url } = await serve(1);
    const page = await open(url);
    expect(await page.locator('#health').isVisible()).toBe(true);
    expect(await page.locator('#candidate').isVisible()).toBe(false);
  });

  it('an unknown request id gets the answer of the picker', async () => {
    const { url } = await serve(1);
    const page = await browser.newPage();
    cleanups.push(() => page.close());
    await page.goto(url);
    await page.locator('#ask-id').fill('not-there');
    await page.locator('#ask button').click();
    await page.locator('dialog', { hasText: 'no decision about request not-there is kept' }).waitFor();
  });

  it('an endpoint that fails and takes no connections is marked with the word', async () => {
    const { client, url } = await serve(2);
    const page = await open(url);
    for (let i = 0; i < 12; i++) await answered(client, `failing-${i}`, '503');
    await page.locator('#endpoints-body .tag', { hasText: 'dead' }).first().waitFor();
    expect(await textOf(page, '#state')).toMatch(/endpoints? out/);
    expect(await textOf(page, '#decisions-body')).toContain('failed');
  });

  it('an endpoint that filters hold back is marked with the reasons', async () => {
    const pair = [await engineWithUsage('free', 0), await engineWithUsage('full', 0.99)];
    const setting = await Setting.create(pair, HOLDING_BACK);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins']);
    cleanups.push(() => picker.stop(0));
    const client = dialPicker(ports.grpcPort);
    cleanups.push(() => client.close());
    const metrics = `http://127.0.0.1:${ports.metricsPort}/metrics`;
    const figures = async () => (await fetch(metrics)).text();
    await eventually('the signals', async () => /^llm_d_epp_ready_endpoints\S* 2$/m.test(await figures()));
    // A cache counts as cold beside one that 64 requests have told of.
    for (let i = 0; i < 70; i++) await answered(client, `held-back-${i}`);
    const page = await open(`http://127.0.0.1:${ports.metricsPort}/ui/`);
    const row = page.locator('#endpoints-body tr', { hasText: 'full' });
    await row.locator('.tag', { hasText: 'vetoed' }).waitFor();
    await row.locator('.tag', { hasText: 'warming up' }).waitFor();
    expect(await row.locator('.tag', { hasText: 'vetoed' }).getAttribute('title')).toContain('90 % of the KV cache');
    expect(await page.locator('#endpoints-body .tag').count()).toBe(2);
    expect(await figures()).toMatch(/^pointsman_endpoint_veto_limit\{endpoint="full",limit="kv-cache"\} 0\.9/m);
    expect(await figures()).toMatch(/^pointsman_endpoint_warming_share\{endpoint="full"\} 0\.25$/m);
  });

  it('a pool of 200 endpoints shows the busiest, and all of them on demand', async () => {
    const { url } = await serve(200);
    const page = await open(url);
    expect(await page.locator('#endpoints-body tbody tr').count()).toBe(24);
    expect(await page.locator('.cells i').count()).toBe(200);
    await page.locator('button', { hasText: 'Show all 200' }).click();
    expect(await page.locator('#endpoints-body tbody tr').count()).toBe(200);
  });

  it.each([
    [360, 'light'],
    [360, 'dark'],
    [800, 'light'],
    [1600, 'dark'],
  ] as const)('a screen of %i px in %s colours has no part outside of it', async (width, scheme) => {
    const { client, url } = await serve(30);
    await answered(client, 'narrow');
    const page = await open(url, width, scheme);
    await page.locator('#decisions-body button').first().waitFor();
    const root = 'document.documentElement';
    expect(await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)).toBe(0);
    const styleOf = (name: string) => page.evaluate<string>(`getComputedStyle(${root}).${name}`);
    const [paper, ink] = [await styleOf('backgroundColor'), await styleOf('color')];
    expect(scheme === 'dark' ? paper : ink).toMatch(/^rgb\((\d|[1-3]\d), /);
  });

  it('a screen of 360 px shows causes of lost cache and traffic whole', async () => {
    const { client, url } = await serve(2);
    for (let i = 0; i < 12; i++) await answered(client, `phone-${i}`, '503');
    const page = await open(url, 360);
    await page.locator('#cache-body th', { hasText: 'new text, seen for the first time' }).waitFor();
    const cut = (selector: string) =>
      page.evaluate(
        `[...document.querySelectorAll('${selector}')].filter((one) => one.scrollWidth > one.clientWidth).length`,
      );
    for (const selector of ['#cache-body th', '#traffic-body .scroll']) {
      expect(await page.locator(selector).count(), selector).toBeGreaterThan(0);
      expect(await cut(selector), selector).toBe(0);
    }
  });

  it('a screen of 360 px shows the result of each decision, and all of its row', async () => {
    const { client, url } = await serve(1);
    await answered(client, 'on-a-phone');
    const page = await open(url, 360);
    const result = page.locator('#decisions-body td', { hasText: 'completed' });
    await result.waitFor();
    expect(await result.isVisible()).toBe(true);
    const table = 'document.querySelector("#decisions-body .scroll")';
    expect(await page.evaluate(`${table}.scrollWidth - ${table}.clientWidth`)).toBe(0);
  });

  it('a screen of 360 px keeps the first token of a decision apart from its result', async () => {
    const { client, url } = await serve(1);
    await answered(client, 'on-a-phone');
    await answered(client, 'refused-on-a-phone', '503');
    const page = await open(url, 360);
    await page.locator('[aria-label="Why request refused-on-a-phone went there"]').waitFor();
    const gaps = await page.evaluate<number[]>(
      `[...document.querySelectorAll('#decisions-body tr')].map((row) => {
        const shown = [...row.cells].filter((cell) => cell.offsetWidth > 0);
        const [, , firstToken, result] = shown.map((cell) => {
          const text = document.createRange();
          text.selectNodeContents(cell);
          return text.getBoundingClientRect();
        });
        return result.left - firstToken.right;
      })`,
    );
    expect(gaps.length).toBe(3);
    // Half the width of a letter and more.
    for (const gap of gaps) expect(gap).toBeGreaterThan(5);
    const table = 'document.querySelector("#decisions-body .scroll")';
    expect(await page.evaluate(`${table}.scrollWidth - ${table}.clientWidth`)).toBe(0);
  });

  it('the focus stays on its control while rows come', async () => {
    const { client, url } = await serve(1);
    await answered(client, 'first');
    const page = await open(url);
    await page.locator('#decisions-body button').first().focus();
    await page.evaluate('window.focused = document.activeElement');
    await answered(client, 'second');
    await page.locator('[aria-label="Why request second went there"]').waitFor();
    expect(await page.evaluate('document.activeElement === window.focused')).toBe(true);
    expect(await page.evaluate('window.focused.getAttribute("aria-label")')).toBe('Why request first went there');
  });

  it('the focus goes to the next control when its row leaves the list', async () => {
    const { client, url } = await serve(1);
    await answered(client, 'leaving');
    const page = await open(url);
    await page.locator('[aria-label="Why request leaving went there"]').focus();
    await eventually('the row has left', async () => {
      await answered(client, `following-${Math.random()}`);
      return (await page.locator('[aria-label="Why request leaving went there"]').count()) === 0;
    });
    expect(await page.evaluate('document.activeElement.closest("#decisions-body") !== null')).toBe(true);
  });

  it('a picker that is gone leaves its figures dimmed, with their time', async () => {
    const { client, url, stop } = await serve(1);
    await answered(client, 'before-the-end');
    const page = await browser.newPage();
    cleanups.push(() => page.close());
    await page.goto(url);
    await page.locator('[aria-label="Why request before-the-end went there"]').waitFor();
    expect(await page.locator('#stale').isVisible()).toBe(false);
    const before = await page.evaluate<string>('getComputedStyle(document.querySelector("#figures dd")).color');
    await stop();
    await page.locator('#stale', { hasText: /not been heard since \d\d:\d\d:\d\d/ }).waitFor();
    expect(await textOf(page, '#state')).toBe('no connection');
    expect(await page.evaluate('getComputedStyle(document.querySelector("#figures dd")).color')).not.toBe(before);
    expect(await violations(page)).toEqual([]);
  });

  it.each([
    ['an empty pool', 0, 1280, 'light'],
    ['a pool with traffic', 3, 1280, 'light'],
    ['a pool with traffic', 3, 1280, 'dark'],
    ['a pool with traffic, on a phone', 3, 360, 'light'],
    ['a pool of 200 endpoints', 200, 1280, 'dark'],
  ] as const)('axe finds nothing to object to in %s (%i endpoints, %i px, %s)', async (_what, count, width, scheme) => {
    const { client, url } = await serve(count);
    const page = await open(url, width, scheme);
    await page.locator('#configuration-body details').waitFor();
    if (count > 0) {
      for (let i = 0; i < 6; i++) await answered(client, `looked-at-${i}`, i < 3 ? '200' : '503');
      await page.locator('#decisions-body', { hasText: 'failed' }).waitFor();
    }
    expect(await violations(page)).toEqual([]);
    if (count === 0) return;
    await page.locator('#decisions-body button').first().click();
    await page.locator('dialog h3').waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it('every control has a name and every table heads', async () => {
    const { client, url } = await serve(3);
    await answered(client, 'named');
    const page = await open(url);
    await page.locator('#decisions-body button').first().waitFor();
    for (const button of await page.getByRole('button').all()) {
      expect((await button.getAttribute('aria-label')) ?? (await button.innerText())).not.toBe('');
    }
    expect(await page.locator('table:not(:has(thead th[scope=col]))').count()).toBe(0);
    expect(await page.getByRole('heading', { level: 2 }).count()).toBeGreaterThanOrEqual(8);
    expect(await page.getByLabel('Request id').count()).toBe(1);
  });
});

describe('the page', () => {
  it('the page may load and reach nothing but its own port', async () => {
    const { url } = await serve(1);
    const { headers, status } = await fetch(url);
    expect(status).toBe(200);
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/,
    );
    const files = await Promise.all(['', 'page.js', 'page.css'].map(async (file) => (await fetch(url + file)).text()));
    expect(files.reduce((sum, text) => sum + text.length, 0)).toBeLessThan(150_000);
    expect(files.join('').match(/https?:\/\/(?!www\.w3\.org|github\.com\/leeoniya)[a-z]/g)).toBeNull();
    expect((await fetch(`${url}../package.json`)).status).toBe(404);
    expect((await fetch(`${url}%2e%2e/package.json`)).status).toBe(404);
  });

  it('--ui=false serves nothing of it', async () => {
    const { url } = await serve(1, '--ui=false');
    for (const path of ['', 'page.js', 'events', 'configuration']) expect((await fetch(url + path)).status).toBe(404);
  });

  it('a ninth viewer is told to come later, and one that leaves makes room', async () => {
    const { url } = await serve(1);
    const leaving = new AbortController();
    const first = await fetch(`${url}events`, { signal: leaving.signal });
    const others = await Promise.all(Array.from({ length: 7 }, () => fetch(`${url}events`)));
    expect([first, ...others].every(({ status }) => status === 200)).toBe(true);
    expect((await fetch(`${url}events`)).status).toBe(503);
    leaving.abort();
    await eventually('there is room', async () => {
      const again = await fetch(`${url}events`);
      await again.body?.cancel();
      return again.status === 200;
    });
    for (const { body } of others) await body?.cancel();
  });
});
