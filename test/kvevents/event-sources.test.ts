import { expect, it } from 'vitest';
import { type FollowedSockets, rankOf, sourcesAdvice } from '../../dist/src/kvevents/event-sources.js';

const connecting: FollowedSockets = {
  bind: undefined,
  connect: { port: 5557, replayPort: undefined },
  topicFilter: 'kv@',
  rank: 0,
};
const bound: FollowedSockets = { ...connecting, bind: 'tcp://*:5557', connect: undefined };

const source = (fields: object) => ({
  status: 200,
  text: JSON.stringify({
    0: { enable_kv_cache_events: true, publisher: 'zmq', endpoint: 'tcp://*:5557', topic: 'kv@pod@m', ...fields },
  }),
});

it.each([
  ['an engine without that page', { status: 404, text: '' }, connecting, '/kv_event_sources does not tell why'],
  ['an engine that does not answer', undefined, connecting, '/kv_event_sources does not tell why'],
  ['an answer that is no JSON', { status: 200, text: '<html>' }, connecting, '/kv_event_sources does not tell why'],
  ['an empty list', { status: 200, text: '{}' }, connecting, 'it publishes no events: start it with'],
  ['events that are off', source({ enable_kv_cache_events: false }), connecting, 'it publishes no events: start it'],
  ['a publisher that is none', source({ publisher: 'null' }), connecting, 'it publishes no events: start it with'],
  ['a topic that the filter leaves out', source({ topic: '' }), connecting, 'its topic is "": set its topic to kv@<ip'],
  ['another port', source({ endpoint: 'tcp://*:6001' }), connecting, 'podDiscoveryConfig.socketPort: 6001'],
  ['the same port', source({}), connecting, 'on port 5557 as configured: see that the network lets the picker'],
  [
    'an engine that binds, of a picker that binds',
    source({}),
    bound,
    'kvEventsConfig.discoverPods and socketPort: 5557',
  ],
  [
    'an engine that connects, of a picker that connects',
    source({ endpoint: 'tcp://picker:5557' }),
    connecting,
    'it connects to tcp://picker:5557: set kvEventsConfig.zmqEndpoint to tcp://*:5557',
  ],
  [
    'an engine that connects to a wrong place',
    source({ endpoint: 'tcp://picker:5558' }),
    bound,
    'it connects to tcp://picker:5558: see that this picker is there, at the port of zmqEndpoint (tcp://*:5557)',
  ],
  ['a socket of a file', source({ endpoint: 'ipc:///run/kv' }), connecting, 'publishes at ipc:///run/kv: give it an'],
])('the sources of %s tell what to configure', (_what, answer, followed, said) => {
  expect(sourcesAdvice(answer, followed)).toContain(said);
});

it('the sources of a further data-parallel rank name the port of the first one', () => {
  const text = JSON.stringify({ 2: { endpoint: 'tcp://*:6003', topic: 'kv@pod@m' } });
  const followed = { ...connecting, connect: { port: 5559, replayPort: undefined }, rank: rankOf('pod-rank-2') };
  expect(sourcesAdvice({ status: 200, text }, followed)).toContain('socketPort: 6001');
});
