import type { CacheLossCause } from '../src/core/cache-loss.ts';

export function percent(value: number | null): string {
  return value === null ? '–' : `${Math.round(value * 100)} %`;
}

export function ms(value: number | null): string {
  if (value === null) return '–';
  if (value < 10) return `${value.toFixed(1)} ms`;
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`;
}

export function count(value: number | null): string {
  if (value === null) return '–';
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return value >= 10_000
    ? `${Math.round(value / 1000)} k`
    : value.toLocaleString('en-US', { maximumFractionDigits: 1 });
}

export function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB');
}

export function plural(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}

/** Name of an endpoint without its namespace. */
export function short(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1);
}

/** Why tokens were computed anew. */
export const CAUSES: Readonly<Record<CacheLossCause, string>> = {
  'never-stored': 'new text, seen for the first time',
  evicted: 'evicted by the engine',
  'by-load': 'sent elsewhere because of load',
  'by-filter': 'sent elsewhere because of a filter',
  'by-overload': 'sent elsewhere because the endpoint was full',
  'endpoint-away': 'the endpoint was draining, ejected, dead or silent',
  'evicted-predicted': 'evicted since, by the size of the cache',
  'evicted-told': 'evicted since, as the engine reported',
  unconfirmed: 'sent there, and not reported by the engine',
  'index-full': 'forgotten by the picker: its index is full',
  'engine-restarted': 'the engine has ended or restarted',
  'cache-cleared': 'the engine has cleared its cache',
  'events-lost': 'events of the engine were lost',
  'endpoint-gone': 'the endpoint has left the pool',
  'adapter-changed': 'seen for another model, adapter or salt',
  'template-changed': 'seen behind other tools, system or template',
  'session-lapsed': 'session lapsed: its place was given away',
  'session-lost': 'session lost: the engine forgot it for want of room',
};
