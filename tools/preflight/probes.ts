import { digestOf, ENDPOINT_HEADER } from './test-endpoint.js';
import {
  briefly,
  chatOf,
  exchange,
  failed,
  type ProbeResult,
  passed,
  suspectsOf,
  type TestRun,
  unreached,
} from './test-run.js';

const BODY_BYTES = [1_000, 32_000, 100_000, 400_000, 1_000_000, 4_000_000];

/** Sends a small request to the test endpoint and back. */
export async function reach(run: TestRun): Promise<ProbeResult> {
  const { id, answer: coming } = exchange(run, {});
  const answer = await coming;
  if (answer.status === 200 && answer.headers[ENDPOINT_HEADER] !== undefined) {
    return passed('way', 'a request comes to the test endpoint and its answer back');
  }
  if (answer.status === 200) {
    return failed('way', 'another endpoint has answered: give the picker a pool with the test endpoint alone', []);
  }
  const away = unreached(answer);
  if (away !== undefined) return { ...failed('way', away, []), isFinal: true };
  const came =
    run.endpoint.seen(id) === undefined ? 'nothing came to the test endpoint' : 'it came to the test endpoint';
  return failed('way', `${briefly(answer)}; ${came}`, suspectsOf(answer));
}

/** Bodies of 1 KB to 4 MB arrive whole. */
export async function bodies(run: TestRun): Promise<ProbeResult> {
  for (const bytes of BODY_BYTES) {
    const body = chatOf(run.model, bytes);
    const { id, answer: coming } = exchange(run, {}, { body });
    const answer = await coming;
    const size = `${bytes / 1000} KB`;
    if (answer.status !== 200) return failed('bodies', `a body of ${size}: ${briefly(answer)}`, suspectsOf(answer));
    if (run.endpoint.seen(id)?.digest !== digestOf(body)) {
      return failed('bodies', `a body of ${size} arrived changed: a rewrite rule or a filter edits it`, []);
    }
  }
  return passed('bodies', '1 KB to 4 MB arrive whole');
}

const STREAM_PIECES = 10;
const STREAM_PAUSE_MS = 100;

/** Checks that the pieces of a streamed answer arrive one by one. */
export async function stream(run: TestRun): Promise<ProbeResult> {
  const answer = await exchange(run, { pieces: STREAM_PIECES, pauseMs: STREAM_PAUSE_MS }).answer;
  if (answer.status !== 200 || answer.broken !== undefined) {
    return failed('stream', briefly(answer), ['response_body_mode', ...suspectsOf(answer)]);
  }
  const firstMs = answer.piecesMs[0] ?? answer.durationMs;
  const heldMs = STREAM_PIECES * STREAM_PAUSE_MS;
  if (answer.durationMs - firstMs < heldMs / 2) {
    const text =
      `the answer of ${heldMs} ms came in one piece after ${Math.round(firstMs)} ms: it is held back ` +
      'until its end';
    return failed('stream', text, ['response_body_mode', 'compressor', 'max_request_bytes']);
  }
  return passed('stream', `pieces come one by one, the first after ${Math.round(firstMs)} ms`);
}

/** Trailers of requests and answers do no harm. */
export async function trailers(run: TestRun): Promise<ProbeResult> {
  const { id, answer: coming } = exchange(run, { trailer: true }, { trailer: true });
  const answer = await coming;
  if (answer.status !== 200) {
    return failed('trailers', briefly(answer), [
      'request_trailer_mode',
      'response_trailer_mode',
      ...suspectsOf(answer),
    ]);
  }
  const kept = [
    ...(run.endpoint.seen(id)?.trailer === undefined ? [] : ['of the request']),
    ...(answer.trailer === undefined ? [] : ['of the answer']),
  ];
  // HTTP/1 proxies drop trailers unless enable_trailers is set; models send none.
  return passed(
    'trailers',
    kept.length === 0 ? 'do no harm; the gateway drops them' : `pass: those ${kept.join(' and ')}`,
  );
}

/** A client with a slow line. */
export async function slowUpload(run: TestRun): Promise<ProbeResult> {
  const uploadMs = Math.max(1, Math.round(run.seconds * 0.6)) * 1000;
  const answer = await exchange(run, {}, { body: chatOf(run.model, 60_000), uploadMs }).answer;
  const took = `${uploadMs / 1000} s`;
  if (answer.status === 200) return passed('slow client', `an upload of ${took} arrives`);
  const after = (answer.durationMs / 1000).toFixed(1);
  const suspects =
    answer.status === 504 || answer.status === 500 ? ['message_timeout', 'request_timeout'] : suspectsOf(answer);
  return failed('slow client', `an upload of ${took} ended after ${after} s: ${briefly(answer)}`, suspects);
}

/** A long prefill: silence before the answer begins. */
export async function silence(run: TestRun): Promise<ProbeResult> {
  const answer = await exchange(run, { delayMs: run.seconds * 1000 }).answer;
  if (answer.status === 200) return passed('silence', `an answer that begins after ${run.seconds} s arrives`);
  const text =
    `an answer that would begin after ${run.seconds} s ended after ${(answer.durationMs / 1000).toFixed(1)} s: ` +
    `${briefly(answer)}`;
  return failed('silence', text, suspectsOf(answer));
}

/** A long streamed answer. */
export async function longAnswer(run: TestRun): Promise<ProbeResult> {
  const pauseMs = 250;
  const pieces = Math.ceil((run.seconds * 1000) / pauseMs);
  const answer = await exchange(run, { pieces, pauseMs }).answer;
  if (answer.status === 200 && answer.broken === undefined && answer.piecesMs.length > 0) {
    return passed('long answer', `a stream of ${run.seconds} s comes to its end`);
  }
  const text =
    `a stream of ${run.seconds} s was cut after ${(answer.durationMs / 1000).toFixed(1)} s: ` + `${briefly(answer)}`;
  return failed('long answer', text, [
    'timeout',
    'max_stream_duration',
    'idle_timeout',
    'stream_idle_timeout',
    'response_body_mode',
  ]);
}

/** A model server that fails once. The picker takes it out after two failures in a row. */
export async function failure(run: TestRun): Promise<ProbeResult> {
  const refused = exchange(run, { status: 503 });
  const answer = await refused.answer;
  const afterwards = await exchange(run, {}).answer;
  const reset = exchange(run, { reset: true });
  await reset.answer;
  await exchange(run, {}).answer;
  const tries = [refused, reset].map(({ id }) => run.endpoint.seen(id)?.tries ?? 0);
  if (tries.some((count) => count > 1)) {
    const text =
      `a request that failed was sent again to the same endpoint: tries with a 503 ${tries[0]}, with a reset ` +
      `${tries[1]}`;
    return failed('failures', text, ['retry_policy']);
  }
  if (answer.status !== 503)
    return failed('failures', `a 503 of the endpoint came as ${briefly(answer)}`, suspectsOf(answer));
  if (afterwards.status !== 200)
    return failed('failures', `the request behind a 503: ${briefly(afterwards)}`, suspectsOf(afterwards));
  return passed('failures', 'a failed request is told to the client once, and not repeated');
}
