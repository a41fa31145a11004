import { describe, expect, test } from 'vitest';
import { HealthState } from '../../dist/src/operations/health.js';

const EXT_PROC = 'envoy.service.ext_proc.v3.ExternalProcessor';
const READINESS = ['', 'readiness', EXT_PROC, 'inference-extension'];

describe('health state', () => {
  test('the health state is not ready before discovery has loaded and the shards listen', () => {
    const health = new HealthState();
    expect(health.unreadyReasons()).toEqual(['discovery has not loaded yet', 'not all shards are listening']);
    health.update({ discoveryLoaded: true });
    for (const service of READINESS) expect(health.status(service)).toBe('NOT_SERVING');
    health.update({ shardsReady: true });
    for (const service of READINESS) expect(health.status(service)).toBe('SERVING');
    expect(health.unreadyReasons()).toEqual([]);
  });

  test('draining makes it unready but not dead', () => {
    const health = new HealthState();
    health.update({ discoveryLoaded: true, shardsReady: true });
    health.update({ draining: true });
    expect(health.status('readiness')).toBe('NOT_SERVING');
    expect(health.status(EXT_PROC)).toBe('NOT_SERVING');
    expect(health.status('liveness')).toBe('SERVING');
  });

  test.each([
    [{ poolAbsent: 'there is no InferencePool llm/pool' }, 'there is no InferencePool llm/pool'],
    [{ protocolMisfit: 'no parser speaks it' }, 'no parser speaks it'],
    [{ leader: false }, 'another replica is the leader'],
  ])('%j makes it unready but not dead, and says why', (inputs, reason) => {
    const health = new HealthState();
    health.update({ discoveryLoaded: true, shardsReady: true, ...inputs });
    expect(health.status('readiness')).toBe('NOT_SERVING');
    expect(health.status('liveness')).toBe('SERVING');
    expect(health.unreadyReasons()).toEqual([reason]);
  });

  test('the health state names what discovery waits for', () => {
    const health = new HealthState();
    health.update({ shardsReady: true, discoveryAwaits: () => 'pods (no answer)' });
    expect(health.unreadyReasons()).toEqual(['discovery waits for pods (no answer)']);
  });

  test('the health state knows its services and no others', () => {
    const health = new HealthState();
    expect(health.services()).toEqual(['', 'readiness', EXT_PROC, 'inference-extension', 'liveness']);
    expect(health.status('grpc.reflection')).toBe('SERVICE_UNKNOWN');
  });

  test('watchers hear of every change of readiness once, until they stop', () => {
    const health = new HealthState();
    const heard: string[] = [];
    const stop = health.watch(() => heard.push(health.status('')));
    health.update({ discoveryLoaded: true });
    health.update({ shardsReady: true });
    health.update({ shardsReady: true });
    health.update({ draining: true });
    stop();
    health.update({ draining: false });
    expect(heard).toEqual(['SERVING', 'NOT_SERVING']);
  });

  test('a watcher that stops while it is told keeps the others', () => {
    const health = new HealthState();
    let told = 0;
    const stop = health.watch(() => stop());
    health.watch(() => told++);
    health.update({ discoveryLoaded: true, shardsReady: true });
    expect(told).toBe(1);
  });
});
