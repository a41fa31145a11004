// How evenly whole pickers lay system prompts that many requests share over idle endpoints.
import { type Exchange, ExtProcClient } from '../compat/ext-proc.ts';
import { PickerProcess } from '../compat/picker-process.ts';
import type { ProcessFigure } from './figure.ts';
import { CONFIGURATION, FLAGS, OWN_COMMAND, withFiles } from './load.ts';

const ENDPOINTS = 8;
const SYSTEM_PROMPTS = 16;
const SYSTEM_BYTES = 3_000;
const QUESTION_BYTES = 1_000;
/** One at a time. */
const IN_TURN = 800;
const BURST = 1_000;
/** Of a burst: a server may bound the streams of one. */
const CONNECTIONS = 16;

/** Learned costs alone decide, by the costs that they begin with: there is nothing to learn from these requests. */
const BY_COSTS = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: marginal-cost-scorer
schedulingProfiles:
- name: default
  plugins: [{pluginRef: marginal-cost-scorer, weight: 1}]
`;

type Note = (scenario: string, value: number, unit: ProcessFigure['unit']) => void;

/** Text that differs from its first bytes on. */
function unique(number: number, bytes: number): string {
  return `${number} is my number. `.repeat(Math.ceil(bytes / 15)).slice(0, bytes);
}

function request(serial: number) {
  const content = unique(serial % SYSTEM_PROMPTS, SYSTEM_BYTES) + unique(serial, QUESTION_BYTES);
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });
  return {
    path: '/v1/chat/completions',
    headers: [['content-type', 'application/json']] as const,
    body,
    subset: undefined,
  };
}

/** Requests of the fullest endpoint by those of an even share. */
function fullest(exchanges: readonly Exchange[]): number {
  const counts = new Map<string, number>();
  for (const { decision } of exchanges) {
    if (!decision.destination.includes(':')) throw new Error(`a request was answered with ${decision.destination}`);
    counts.set(decision.destination, (counts.get(decision.destination) ?? 0) + 1);
  }
  return (Math.max(...counts.values()) * ENDPOINTS) / exchanges.length;
}

/** Each request is sent when the one before has ended. */
async function inTurn([client]: readonly ExtProcClient[]): Promise<number> {
  const exchanges: Exchange[] = [];
  for (let serial = 0; serial < IN_TURN; serial++) {
    const exchange = await client!.ask(request(serial));
    await exchange.finish();
    exchanges.push(exchange);
  }
  return fullest(exchanges);
}

/** The first request of each system prompt in turn, the others at once; none ends before all are placed. */
async function burst(clients: readonly ExtProcClient[]): Promise<number> {
  const ask = (serial: number) => clients[serial % clients.length]!.ask(request(serial));
  const exchanges: Exchange[] = [];
  while (exchanges.length < SYSTEM_PROMPTS) exchanges.push(await ask(exchanges.length));
  const rest = Array.from({ length: BURST - SYSTEM_PROMPTS }, (_, i) => ask(SYSTEM_PROMPTS + i));
  exchanges.push(...(await Promise.all(rest)));
  await Promise.all(exchanges.map((exchange) => exchange.finish()));
  return fullest(exchanges);
}

type Load = (clients: readonly ExtProcClient[]) => Promise<number>;

/** Median of several pickers, each with a lot of its own. */
async function medianOf(command: readonly string[], configuration: string, runs: number, load: Load): Promise<number> {
  const figures: number[] = [];
  for (let run = 0; run < runs; run++) {
    const figure = await withFiles(ENDPOINTS, configuration, async (file) => {
      const picker = await PickerProcess.start(command, file, ENDPOINTS, FLAGS);
      const clients = Array.from({ length: CONNECTIONS }, () => new ExtProcClient(picker.port));
      try {
        return await load(clients);
      } finally {
        for (const client of clients) client.close();
        picker.stop();
      }
    });
    figures.push(figure);
  }
  return figures.toSorted((a, b) => a - b)[runs >> 1]!;
}

/** @param runs of each scenario; a prompt lies where the first pick puts it, by lot among idle endpoints */
export async function spreadFigures(command: readonly string[], runs: number, note: Note): Promise<void> {
  const profiles = [['default weights', CONFIGURATION]];
  if (command === OWN_COMMAND) profiles.push(['learned costs', BY_COSTS]);
  for (const [name, configuration] of profiles) {
    note(`in turn, ${name}`, await medianOf(command, configuration!, runs, inTurn), '×');
    note(`burst of 1,000, ${name}`, await medianOf(command, configuration!, runs, burst), '×');
  }
}
