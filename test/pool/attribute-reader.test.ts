import { describe, expect, it } from 'vitest';
import { ExpositionScanner } from '../../dist/src/core/exposition-scanner.js';
import { attachCore, createPoolMemory } from '../../dist/src/core/index.js';
import { AttributeReader } from '../../dist/src/pool/sources/attribute-reader.js';
import { smallSizes } from '../core/pool.js';
import { endpointOf } from './endpoints.js';

const scanner = () => new ExpositionScanner(attachCore(createPoolMemory(smallSizes), 0));
const GPU = { spec: 'DCGM_FI_DEV_GPU_UTIL', scale: 0.01, perPod: true };
const QUEUE = { spec: 'llm_d_epp_average_queue_size{name=pool}', scale: 1, perPod: false };

function reading(specs: readonly (typeof GPU)[], name = 'pod-a', shared = scanner()) {
  const reader = new AttributeReader('source', shared, specs, 1 << 20);
  const prepared = reader.prepare(endpointOf(name, '127.0.0.1', 1));
  return (page: string) => reader.read(prepared, Buffer.from(page));
}

describe('the attributes of a page', () => {
  it('the attributes of a page are the highest of several series, scaled', () => {
    const read = reading([GPU]);
    const page = 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 20\nDCGM_FI_DEV_GPU_UTIL{gpu="1"} 75\nDCGM_FI_DEV_POWER_USAGE 400\n';
    expect(read(page)).toEqual({ signals: { attributes: [0.75] }, empty: false });
  });

  it('the attributes of a page are those of the endpoint where the series name pods, and of series without a pod', () => {
    const line = (pod: string, value: number) => `DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="${pod}"} ${value}\n`;
    expect(reading([GPU])(line('pod-a', 30) + line('pod-b', 90)).signals.attributes).toEqual([0.3]);
    expect(reading([GPU], 'pod-b')(line('pod-a', 30) + line('pod-b', 90)).signals.attributes).toEqual([0.9]);
    expect(reading([GPU])(`${line('pod-b', 90)}DCGM_FI_DEV_GPU_UTIL 10\n`).signals.attributes).toEqual([0.1]);
  });

  it('the attributes of a page are unknown when the page does not tell them, or tells no number', () => {
    expect(reading([GPU])('other 1\n')).toEqual({ signals: { attributes: [undefined] }, empty: true });
    expect(reading([GPU])('DCGM_FI_DEV_GPU_UTIL NaN\n').signals.attributes).toEqual([undefined]);
    expect(reading([GPU])('').empty).toBe(true);
  });

  it('the attributes of a page stand in the order of their specs, each for itself', () => {
    const read = reading([QUEUE, GPU]);
    expect(read('DCGM_FI_DEV_GPU_UTIL 50\n')).toEqual({ signals: { attributes: [undefined, 0.5] }, empty: false });
    expect(read('llm_d_epp_average_queue_size{name="pool"} 3\n').signals.attributes).toEqual([3, undefined]);
    expect(read('llm_d_epp_average_queue_size{name="other"} 3\n').empty).toBe(true);
  });

  it('the attributes of a page take no room for queries, however many endpoints there are', () => {
    const shared = scanner();
    const reader = new AttributeReader('source', shared, [GPU], 1 << 20);
    for (let i = 0; i < 100; i++) {
      const page = Buffer.from(`DCGM_FI_DEV_GPU_UTIL{pod="pod-${i}"} ${i}\n`);
      const prepared = reader.prepare(endpointOf(`pod-${i}`, '127.0.0.1', 1));
      expect(reader.read(prepared, page).signals.attributes![0]).toBeCloseTo(i / 100, 6);
    }
  });

  it('the attributes of a page refuse a spec that is no metric, naming the source', () => {
    const reader = new AttributeReader('gpu', scanner(), [{ ...GPU, spec: 'a b' }], 1 << 20);
    expect(() => reader.prepare(endpointOf('a', '127.0.0.1', 1))).toThrow(/^gpu: "a b" is no metric/);
  });
});
