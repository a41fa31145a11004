// A stand-in API server as a process of its own, so that its CPU time is not that of a picker. Takes the number of
// pods; the messages `churn` and `quiet` start and end changes at the given rate.
import { line, podObject, startStandIn } from './stand-in.ts';

export type Order = { readonly kind: 'churn'; readonly perSecond: number } | { readonly kind: 'quiet' };

/** Every so many changes one pod is deleted and comes back with the next change, and one becomes unready and ready. */
const PATTERN = [
  'labels',
  'labels',
  'labels',
  'unready',
  'labels',
  'ready',
  'labels',
  'deleted',
  'made again',
  'labels',
];

const pods = Number(process.argv[2]);
const server = await startStandIn(pods);
let version = 30_000;
let change = 0;
let timer: NodeJS.Timeout | undefined;

/** Wall time in milliseconds, with fractions: comparable between processes. */
const nowMs = () => performance.timeOrigin + performance.now();

/** One change. The label `sent` says when it was written. */
function next(): string {
  const kind = PATTERN[change % PATTERN.length]!;
  const round = Math.floor(change++ / PATTERN.length);
  const pod = (step: number) => (round * PATTERN.length + step) % pods;
  const labels = { sent: String(nowMs()) };
  const position = (change - 1) % PATTERN.length;
  if (kind === 'unready') return line('MODIFIED', podObject(pod(3), version++, { labels, ready: false }));
  if (kind === 'ready') return line('MODIFIED', podObject(pod(3), version++, { labels }));
  if (kind === 'deleted') return line('DELETED', podObject(pod(7), version++, { life: lives.get(pod(7)) ?? 0 }));
  if (kind !== 'made again')
    return line('MODIFIED', podObject(pod(position), version++, { labels, life: lives.get(pod(position)) ?? 0 }));
  const life = (lives.get(pod(7)) ?? 0) + 1;
  lives.set(pod(7), life);
  return line('ADDED', podObject(pod(7), version++, { labels, life }));
}

const lives = new Map<number, number>();

/** Keeps the rate also when a timer fires late. */
function churn(perSecond: number): void {
  const began = performance.now();
  let sent = 0;
  timer = setInterval(() => {
    for (const due = ((performance.now() - began) / 1000) * perSecond; sent < due; sent++) server.send(next());
  }, 1000 / perSecond);
}

process.on('message', (order: Order) => {
  clearInterval(timer);
  if (order.kind === 'churn') churn(order.perSecond);
});
process.on('disconnect', () => process.exit());
process.send!(server.url);
