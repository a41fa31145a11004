import type { EndpointSessionsShown, HeldTurnShown, SessionsShown } from '../src/operations/page/snapshot.ts';
import { type Column, h, table, unknown } from './dom.ts';
import { count, ms, percent, short } from './text.ts';

/** Sessions of agents: what they need of each cache, and the turns that are held. */
export function sessionParts(sessions: SessionsShown | null): (HTMLElement | null)[] {
  if (sessions === null) return [];
  const { text, endpoints, held } = sessions;
  return [
    h('p', { id: 'sessions-text' }, text),
    endpoints.length === 0 ? null : table({ caption: 'KV cache that sessions need' }, CACHES, endpoints),
    held.length === 0 ? null : table({ caption: 'Turns that are held' }, HELD, held),
  ];
}

const CACHES: Column<EndpointSessionsShown>[] = [
  { head: 'Endpoint', cell: ({ id }) => short(id) },
  { head: 'In use', cell: (endpoint) => (endpoint.capacity === null ? unknown() : bar(endpoint)) },
  { head: 'Protected', number: true, cell: ({ protectedTokens }) => `${count(protectedTokens)} tokens` },
  {
    head: 'Cache',
    number: true,
    wide: true,
    cell: ({ capacity }) => (capacity === null ? unknown() : `${count(capacity)} tokens`),
  },
];

/** What is in use, the protected part of it dark. */
function bar({ usedTokens, protectedTokens, capacity }: EndpointSessionsShown): HTMLElement {
  const [used, kept] = [usedTokens / capacity!, protectedTokens / capacity!];
  const what = `${percent(used)} in use, ${percent(kept)} of it protected`;
  const [dark, light] = [h('i', { class: 'kept' }), h('i', { class: 'between' })];
  dark.style.width = `${100 * Math.min(1, kept)}%`;
  light.style.width = `${100 * Math.max(0, Math.min(1, used) - kept)}%`;
  return h('span', {}, h('span', { class: 'kv', role: 'img', 'aria-label': what }, dark, light), percent(used));
}

const HELD: Column<HeldTurnShown>[] = [
  { head: 'Prompt', number: true, cell: ({ promptTokens }) => `${count(promptTokens)} tokens` },
  { head: 'Waited', number: true, cell: ({ waitedMs }) => ms(waitedMs) },
  { head: 'Needs', number: true, cell: ({ needTokens }) => `${count(needTokens)} tokens` },
  {
    head: 'Best room',
    number: true,
    cell: ({ bestRoomTokens }) => (bestRoomTokens === null ? unknown() : `${count(bestRoomTokens)} tokens`),
  },
  { head: 'Session', wide: true, cell: ({ known }) => (known ? 'goes on' : 'new') },
  { head: 'Priority', number: true, wide: true, cell: ({ priority }) => String(priority) },
];
