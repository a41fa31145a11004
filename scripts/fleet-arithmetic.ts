// The arithmetic of a pool that is larger than any that was measured: groups, replicas, cores and NATS by the requests
// a second, for docs/internals/replication.md.
import { INTERVAL_MS_MAX, INTERVAL_MS_MIN } from '../dist/src/replication/exchange-pace.js';
import { SERVE_FLAGS } from '../dist/src/serve/flag-table.js';
import { UTILISATION } from './sizing-formula.ts';

/** What was measured of one picker, and of few replicas. */
export interface MeasuredParts {
  /** CPU time of a shard for one exchange of 4 KB, in microseconds. */
  readonly exchangeUs: number;
  /** CPU time that each replica takes for a request of its group, in microseconds. */
  readonly sharedUs: number;
  /** Bytes sent to the other replicas for a request. */
  readonly bytes: number;
}

/** Groups of replicas that share a pool's requests evenly, and what they take. */
export interface FleetSize {
  readonly groups: number;
  /** Requests a second of a group. */
  readonly rate: number;
  readonly replicas: number;
  /** Shards of a replica. */
  readonly shards: number;
  /** Of all groups. */
  readonly shardCores: number;
  /** Of all groups. */
  readonly exchangeCores: number;
  /** Whether the exchange takes its whole share, so that placements are left out. */
  readonly isBounded: boolean;
  /** Messages a second to NATS, of all groups, and from it. */
  readonly messages: readonly [number, number];
  /** Megabytes a second to NATS, of all groups, and from it. */
  readonly megabytes: readonly [number, number];
  readonly natsServers: number;
}

export const GROUPS: readonly number[] = [1, 5, 25, 100];
/** Shards of a replica: with more of them there are fewer replicas that hear every request. */
const SHARDS_MAX = 8;
/** For the death of one. */
const REPLICAS_MIN = 2;
/** Share of a core, where the flag is not given. */
const EXCHANGE_SHARE = SERVE_FLAGS['replication-cpu-percent'].initial / 100;
/** Of a NATS server's link of 10 Gbit/s, six tenths: what it is planned to send. */
const NATS_MB_A_SECOND = 750;

/** @param rate requests a second of all groups */
export function fleetSize(rate: number, groups: number, { exchangeUs, sharedUs, bytes }: MeasuredParts): FleetSize {
  const ofGroup = rate / groups;
  const needed = Math.ceil((ofGroup * exchangeUs) / 1e6 / UTILISATION);
  const replicas = Math.max(REPLICAS_MIN, Math.ceil(needed / SHARDS_MAX));
  const shards = Math.ceil(needed / replicas);
  const share = (ofGroup * sharedUs) / 1e6;
  const isBounded = share > EXCHANGE_SHARE;
  const sent = (groups * replicas * 1_000) / (isBounded ? INTERVAL_MS_MAX : INTERVAL_MS_MIN);
  const sentMb = (rate * bytes) / 1e6;
  return {
    groups,
    rate: ofGroup,
    replicas,
    shards,
    shardCores: groups * replicas * shards,
    exchangeCores: groups * replicas * Math.min(EXCHANGE_SHARE, share),
    isBounded,
    messages: [sent, sent * (replicas - 1)],
    megabytes: [sentMb, sentMb * (replicas - 1)],
    natsServers: Math.ceil((sentMb * (replicas - 1)) / NATS_MB_A_SECOND),
  };
}

const number = (value: number) => Number(value.toPrecision(3)).toLocaleString('en-US');

/** The part of the page: what it is made from, and a row for each number of groups. */
export function fleetText(rate: number, parts: MeasuredParts): string {
  const head = [
    ...['groups', 'requests a second of a group', 'replicas × shards of a group', 'cores for shards'],
    ...['cores for the exchange', 'messages a second, in → out', 'MB a second, in → out', 'NATS servers'],
  ];
  const rows = GROUPS.map((groups) => {
    const size = fleetSize(rate, groups, parts);
    const most = size.isBounded ? 'at most ' : '';
    return [
      ...[String(groups), number(size.rate), `${size.replicas} × ${size.shards}`, number(size.shardCores)],
      `${number(size.exchangeCores)}${size.isBounded ? ', by its bound' : ''}`,
      `${most}${size.messages.map(number).join(' → ')}`,
      `${most}${size.megabytes.map(number).join(' → ')}`,
      `${most}${size.natsServers}`,
    ];
  });
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    `${number(rate)} requests a second; ${number(parts.exchangeUs)} µs of a shard's CPU time for an exchange of 4 KB ` +
      `among 64 endpoints;`,
    `${number(parts.sharedUs)} µs of each replica's for a request of its group, and ${number(parts.bytes)} bytes sent.`,
    '',
    line(head),
    line(head.map(() => '---:')),
    ...rows.map(line),
  ].join('\n');
}
