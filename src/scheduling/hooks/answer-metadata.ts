import type { MetadataSink } from './hooks.js';

export type MetadataValue = number | string | boolean;

/** Dynamic metadata of an answer: values by namespace and key. */
export class AnswerMetadata implements MetadataSink {
  readonly namespaces = new Map<string, Map<string, MetadataValue>>();

  set(namespace: string, key: string, value: MetadataValue): void {
    if (namespace === '' || key === '') throw new RangeError('metadata needs a namespace and a key');
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new RangeError(`the value of ${namespace}/${key} is no finite number`);
    }
    const values = this.namespaces.get(namespace);
    if (values === undefined) this.namespaces.set(namespace, new Map([[key, value]]));
    else values.set(key, value);
  }
}
