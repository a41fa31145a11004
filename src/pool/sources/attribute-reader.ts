import type { Endpoint } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { ScannedPage, WantedMetric } from '../engines/engine.js';
import { parseMetricSpec } from '../engines/metric-spec.js';
import type { PageScanner } from './page-reader.js';
import type { SignalReader } from './signal-reader.js';

/** A number that is taken from a page. */
export interface AttributeSpec {
  /** `name` or `name{label=value,…}`. */
  readonly spec: string;
  readonly scale: number;
  /** Whether series with a label `pod` count only when it names the endpoint. */
  readonly perPod: boolean;
}

/** A scanner whose queries can be replaced. */
export interface AttributeScanner extends PageScanner {
  recompile(query: number, wanted: readonly WantedMetric[]): void;
}

/** Label by which DCGM Exporter tells the series of several pods on one page apart. */
const POD_LABEL = 'pod';
/** Metric that is on no page, so that the query differs from all others. */
const PLACEHOLDER = 'pointsman_attributes';

/**
 * Takes named numbers from a Prometheus page: `attributes` of the signals, in the order of the specs. Of several series
 * the highest counts.
 */
export class AttributeReader implements SignalReader<readonly WantedMetric[]> {
  readonly #scanner: AttributeScanner;
  readonly #specs: readonly AttributeSpec[];
  readonly #pageBytesMax: number;
  readonly #name: string;
  readonly #query: number;

  /**
   * @param name configured name of the source
   * @throws when a spec is no metric, or the scanner has no room for another query
   */
  constructor(name: string, scanner: AttributeScanner, specs: readonly AttributeSpec[], pageBytesMax: number) {
    this.#name = name;
    this.#scanner = scanner;
    this.#specs = specs;
    this.#pageBytesMax = pageBytesMax;
    this.#query = scanner.compile([{ name: `${PLACEHOLDER}:${name}`, aggregate: 'max' }]);
  }

  prepare({ name }: Endpoint): readonly WantedMetric[] {
    return this.#specs.flatMap(({ spec, perPod }) => {
      const metric = parseMetricSpec(spec, this.#name);
      // An empty value also matches a series without the label.
      const pods = perPod ? [{ [POD_LABEL]: name }, { [POD_LABEL]: '' }] : [{}];
      return pods.map((pod) => ({
        name: metric.name,
        labels: { ...metric.labels, ...pod },
        aggregate: 'max' as const,
      }));
    });
  }

  read(
    wanted: readonly WantedMetric[],
    page: Uint8Array,
  ): { readonly signals: EndpointSignals; readonly empty: boolean } {
    this.#scanner.recompile(this.#query, wanted);
    this.#scanner.begin(this.#query, this.#pageBytesMax);
    this.#scanner.feed(page);
    const scanned = this.#scanner.end();
    let at = 0;
    const attributes = this.#specs.map(({ scale, perPod }) => {
      const highest = highestOf(scanned, at, perPod ? 2 : 1);
      at += perPod ? 2 : 1;
      return highest === undefined ? undefined : highest * scale;
    });
    return { signals: { attributes }, empty: attributes.every((value) => value === undefined) };
  }

  nothingFound(): string {
    const names = this.#specs.map(({ spec }) => spec).join(' and ');
    return `the page of ${this.#name} does not tell ${names}: what is made of it stays unknown`;
  }
}

function highestOf({ found, values }: ScannedPage, from: number, count: number): number | undefined {
  let highest: number | undefined;
  for (let i = from; i < from + count; i++) {
    const value = values[i]!;
    if (found[i] && Number.isFinite(value) && (highest === undefined || value > highest)) highest = value;
  }
  return highest;
}
