import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from './gateway-client.js';
import { briefly, exchange, failed, type ProbeResult, passed, suspectsOf, type TestRun } from './test-run.js';

/** Time in which all requests of a burst have come to the endpoint. */
const ARRIVAL_MS_MAX = 15_000;
const LOOK_MS = 50;
/** Requests that begin in a step of LOOK_MS: 240 a second, so that no bound on new connections is met. */
const PER_STEP = 12;
const HANG_UPS = 50;
/** Time in which a charge is released and a connection closed. */
const RELEASE_MS_MAX = 5_000;

/** Many requests at once, each held at the endpoint until all have come. */
export async function atOnce(run: TestRun): Promise<ProbeResult> {
  const { concurrency, endpoint } = run;
  const begin = Promise.withResolvers<void>();
  const exchanges: ReturnType<typeof exchange>[] = [];
  let over = 0;
  while (exchanges.length < concurrency) {
    for (let i = 0; i < PER_STEP && exchanges.length < concurrency; i++) {
      const one = exchange(run, { hold: begin.promise });
      void one.answer.then(() => over++);
      exchanges.push(one);
    }
    await pause(LOOK_MS);
  }
  const came = () => exchanges.filter(({ id }) => endpoint.seen(id) !== undefined).length;
  for (let waited = 0; waited < ARRIVAL_MS_MAX && came() + over < concurrency; waited += LOOK_MS) await pause(LOOK_MS);
  const together = came();
  begin.resolve();
  const answers = await Promise.all(exchanges.map(({ answer }) => answer));
  const bad = answers.filter(({ status }) => status !== 200);
  const name = `${concurrency} at once`;
  if (bad.length > 0) {
    const text = `${bad.length} failed (${kinds(bad)}); ${together} ran at the same time`;
    return failed(name, text, suspectsOf(commonest(bad)));
  }
  if (together < concurrency) {
    const text = `only ${together} came to the endpoint at the same time; the others waited`;
    return failed(name, text, ['max_connections', 'max_concurrent_streams', 'max_requests']);
  }
  return passed(name, 'all run at the same time and are answered');
}

/** An answer of the most frequent kind. */
function commonest(answers: readonly Answer[]): Answer {
  const groups = [...Map.groupBy(answers, briefly).values()];
  return groups.sort((a, b) => b.length - a.length)[0]![0]!;
}

/** The kinds of failed answers with their numbers, the most frequent first. */
function kinds(answers: readonly Answer[]): string {
  const counts = new Map<string, number>();
  for (const answer of answers) counts.set(briefly(answer), (counts.get(briefly(answer)) ?? 0) + 1);
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  return sorted
    .slice(0, 2)
    .map(([kind, count]) => `${count} × ${kind}`)
    .join('; ');
}

/** Clients that hang up, in the middle of an upload and in the middle of an answer. */
export async function hangUps(run: TestRun): Promise<ProbeResult> {
  const before = await run.charged?.();
  const exchanges = Array.from({ length: HANG_UPS }, (_, i) =>
    i % 2 === 0
      ? exchange(run, { pieces: 100, pauseMs: 100 }, { hangUpMs: 500 })
      : exchange(run, {}, { uploadMs: 3_000, hangUpMs: 500 }),
  );
  await Promise.all(exchanges.map(({ answer }) => answer));
  const open = () => exchanges.filter(({ id }) => run.endpoint.seen(id)?.aborted === false).length;
  for (let waited = 0; waited < RELEASE_MS_MAX && open() > 0; waited += LOOK_MS) await pause(LOOK_MS);
  if (open() > 0) {
    const text = `${open()} of ${HANG_UPS} answers go on ${RELEASE_MS_MAX / 1000} s after their clients hung up`;
    return failed('hang-ups', text, ['response_body_mode']);
  }
  if (before === undefined) return passed('hang-ups', 'the endpoint hears of clients that hang up');
  let charged = (await run.charged?.()) ?? 0;
  for (let waited = 0; waited < RELEASE_MS_MAX && charged > before; waited += LOOK_MS) {
    await pause(LOOK_MS);
    charged = (await run.charged?.()) ?? 0;
  }
  if (charged > before) {
    const text = `${charged - before} charges are left ${RELEASE_MS_MAX / 1000} s after their clients hung up`;
    return failed('hang-ups', text, ['response_trailer_mode']);
  }
  return passed('hang-ups', 'the endpoint hears of clients that hang up, and the picker releases their charges');
}
