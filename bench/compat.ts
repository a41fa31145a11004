// Compares decisions with llm-d-router's:
//   node bench/compat.ts --router PATH [--requests 10000] [--seed 1] [--paced] [part-of-a-name …]
//
// For every configuration in bench/compat: both pickers are started with the same file, the same endpoints and flags,
// and are sent the same requests one after the other. A table goes to standard output: requests whose best score one
// endpoint has alone (where it is not alone, llm-d-router picks by chance), the share of them that both send to the
// same endpoint, and the share of requests with the same scores for all endpoints. Needs a build. Run by hand.
//
// Pointsman adds what it has placed since an endpoint's last metrics page to the queue that the page told; llm-d-router
// does not, and sends a burst to one endpoint. With --paced every request waits for new pages, which shows the formulas
// without that difference; it takes about 0.1 s per request.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Exchange, ExtProcClient } from './compat/ext-proc.ts';
import { ModelServer } from './compat/model-servers.ts';
import { type Endpoint, PickerProcess, writePickerFiles } from './compat/picker-process.ts';
import { Tally } from './compat/tally.ts';
import { Workload } from './compat/workload.ts';

const ENDPOINTS = 8;
/** Requests that wait for their responses, so that in-flight load is seen. */
const IN_FLIGHT = 12;
/** New signals after so many requests. */
const PER_LOAD = 250;
/** Both pickers read a page every 50 ms: after so many more reads each has seen it, whatever was under way. */
const READS = 6;
/** After so many more reads each has read once more. */
const PACED_READS = 3;
/** From the reading of a page to its effect, with much to spare. */
const EFFECT_MS = 20;
const ROLES = ['decode', 'decode', 'decode', 'prefill', 'prefill', 'encode', 'prefill-decode', 'both'];

interface Plan {
  readonly requests: number;
  readonly seed: number;
  readonly paced: boolean;
  /** The configuration has a picker that draws lots. */
  readonly byChance: boolean;
}

interface ComparisonBed {
  readonly servers: readonly ModelServer[];
  readonly endpoints: readonly Endpoint[];
}

async function compare(
  bed: ComparisonBed,
  name: string,
  router: string,
  asked: Omit<Plan, 'byChance'>,
): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-compat-'));
  const text = readFileSync(new URL(`compat/${name}.yaml`, import.meta.url), 'utf8');
  const configuration = writePickerFiles(folder, text, bed.endpoints);
  const program = fileURLToPath(new URL('../bin/pointsman.js', import.meta.url));
  const started: PickerProcess[] = [];
  try {
    const theirs = await PickerProcess.start([router], configuration, ENDPOINTS).catch(because('llm-d-router'));
    started.push(theirs);
    const ours = await PickerProcess.start([process.execPath, program, 'serve'], configuration, ENDPOINTS).catch(
      because('Pointsman'),
    );
    started.push(ours);
    const byChance = /^- type: (weighted-)?random-picker$/m.test(text);
    return await send(bed, theirs.port, ours.port, { ...asked, byChance });
  } finally {
    for (const picker of started) picker.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function because(who: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${who} does not start: ${error instanceof Error ? error.message : String(error)}`);
  };
}

async function send(bed: ComparisonBed, theirPort: number, ourPort: number, plan: Plan): Promise<Tally> {
  const { requests, seed, paced } = plan;
  const addresses = bed.endpoints.map(({ address, port }) => `${address}:${port}`);
  const workload = new Workload(seed, addresses);
  const clients = [new ExtProcClient(theirPort), new ExtProcClient(ourPort)] as const;
  const tally = new Tally(plan.byChance);
  const inFlight: (readonly Exchange[])[] = [];
  const finish = async (exchanges: readonly Exchange[]) => {
    await Promise.all(exchanges.map((exchange) => exchange.finish()));
  };
  for (let sent = 0; sent < requests; sent++) {
    if (sent % PER_LOAD === 0) {
      for (const [position, load] of workload.loads().entries()) bed.servers[position]!.show(load);
      await pagesRead(bed, READS);
    } else if (paced) await pagesRead(bed, PACED_READS);
    const request = workload.next();
    const [theirs, ours] = await Promise.all([clients[0].ask(request), clients[1].ask(request)]);
    const verdict = tally.add(theirs.decision, ours.decision, !request.opens);
    // What was sent apart leaves different prompts in the two indexes: go on with a conversation that is new to both.
    if (theirs.decision.destination !== ours.decision.destination || verdict !== 'identical') {
      workload.restart(request.conversation);
      await finish([theirs, ours]);
      continue;
    }
    inFlight.push([theirs, ours]);
    if (inFlight.length > IN_FLIGHT) await finish(inFlight.shift()!);
  }
  for (const exchanges of inFlight) await finish(exchanges);
  for (const client of clients) client.close();
  return tally;
}

/** Resolves when every page has been read so many times more. */
async function pagesRead({ servers }: ComparisonBed, times: number): Promise<void> {
  const before = servers.map(({ reads }) => reads);
  while (servers.some(({ reads }, position) => reads < before[position]! + times)) await pause(5);
  await pause(EFFECT_MS);
}

function row(name: string, { requests, unique, identical, scored, sameScores, furthest }: Tally): string {
  const share = (part: number, whole: number) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(2)} %`);
  const cells = [name, requests, unique, share(identical, unique), share(sameScores, scored), furthest.toPrecision(2)];
  return `| ${cells.join(' | ')} |`;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      router: { type: 'string' },
      requests: { type: 'string', default: '10000' },
      seed: { type: 'string', default: '1' },
      paced: { type: 'boolean', default: false },
    },
  });
  if (values.router === undefined) throw new Error('--router: name the program to compare with');
  const plan = { requests: Number(values.requests), seed: Number(values.seed), paced: values.paced };
  const folder = new URL('compat', import.meta.url);
  const names = readdirSync(folder).flatMap((file) => (file.endsWith('.yaml') ? [file.slice(0, -5)] : []));
  const chosen = names.filter((name) => positionals.length === 0 || positionals.some((part) => name.includes(part)));
  const servers = await Promise.all(
    Array.from({ length: ENDPOINTS }, (_, position) => ModelServer.start(`127.0.1.${position + 1}`)),
  );
  const endpoints = servers.map(({ address }, position) => ({
    name: `server-${position}`,
    address: address.address,
    port: address.port,
    labels: { 'llm-d.ai/role': ROLES[position]!, zone: `zone-${position % 3}` },
  }));
  console.log('| configuration | requests | best alone | identical | same scores | furthest score |');
  console.log('| --- | ---: | ---: | ---: | ---: | ---: |');
  for (const name of chosen.sort()) {
    try {
      const tally = await compare({ servers, endpoints }, name, values.router, plan);
      console.log(row(name, tally));
      for (const difference of tally.differences) console.error(`  ${name}: ${difference}`);
    } catch (error) {
      console.log(`| ${name} | – | | | | ${error instanceof Error ? error.message.replaceAll('|', '/') : error} |`);
    }
  }
  for (const server of servers) server.stop();
}

if (process.argv[1] === import.meta.filename) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
