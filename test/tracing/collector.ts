import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../dist/src/serve/port.js';
import { eventually } from '../tools/gateway/client.ts';

const installed = fileURLToPath(new URL('../../.tools/otelcol/otelcol', import.meta.url));
const binary = process.env.OTELCOL_BIN ?? (existsSync(installed) ? installed : undefined);

/**
 * Why the tests with a collector are skipped; the empty string when they run. With POINTSMAN_REQUIRE_OTELCOL=1 they
 * never are.
 */
export const skipReason =
  binary === undefined && process.env.POINTSMAN_REQUIRE_OTELCOL !== '1'
    ? ' (skipped: no OpenTelemetry collector found; run scripts/install-otelcol.sh or set OTELCOL_BIN)'
    : '';

/** A span as the collector prints it. */
export interface CollectedSpan {
  readonly resource: Readonly<Record<string, string>>;
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly start: number;
  readonly end: number;
  readonly status: string;
  readonly statusMessage: string;
  /** Values with their types, such as `Int(3)`. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** An OpenTelemetry collector that takes OTLP over gRPC and HTTP and prints every span. */
export class Collector {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly #child: ChildProcess;
  readonly #folder: string;
  #text = '';

  private constructor(child: ChildProcess, folder: string, [grpcPort, httpPort]: readonly number[]) {
    this.#child = child;
    this.#folder = folder;
    this.grpcPort = grpcPort!;
    this.httpPort = httpPort!;
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => (this.#text += piece));
  }

  static async start(): Promise<Collector> {
    if (binary === undefined) {
      throw new Error('POINTSMAN_REQUIRE_OTELCOL=1, but no collector: run scripts/install-otelcol.sh');
    }
    const ports = await freePorts(2);
    const folder = await mkdtemp(join(tmpdir(), 'pointsman-otelcol-'));
    const file = join(folder, 'collector.yaml');
    await writeFile(file, configuration(ports));
    const child = spawn(binary, ['--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    const collector = new Collector(child, folder, ports);
    await eventually('the collector serves', () => collector.#text.includes('Everything is ready'));
    return collector;
  }

  /** Spans that have come so far. */
  get spans(): CollectedSpan[] {
    return readSpans(this.#text);
  }

  /** Spans of a trace, once one of them has this name. */
  async trace(traceId: string, name: string): Promise<CollectedSpan[]> {
    const ofTrace = () => this.spans.filter((span) => span.traceId === traceId);
    await eventually(`span ${name} of trace ${traceId}`, () => ofTrace().some((span) => span.name === name));
    return ofTrace();
  }

  async stop(): Promise<void> {
    this.#child.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function configuration([grpcPort, httpPort]: readonly number[]): string {
  return `receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${grpcPort}"}
      http: {endpoint: "127.0.0.1:${httpPort}"}
exporters:
  debug: {verbosity: detailed}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
`;
}

/** Reads the text of the debug exporter at its highest verbosity. */
function readSpans(text: string): CollectedSpan[] {
  return text
    .split('ResourceSpans #')
    .slice(1)
    .flatMap((block) => {
      const [head = '', ...spans] = block.split(/^Span #\d+$/m);
      const resource = attributesOf(head.split('ScopeSpans #')[0]!);
      return spans.map((span) => {
        const field = (name: string) => new RegExp(`^    ${name} *: (.*)$`, 'm').exec(span)?.[1]?.trim() ?? '';
        return {
          resource,
          name: field('Name'),
          kind: field('Kind'),
          traceId: field('Trace ID'),
          spanId: field('ID'),
          parentId: field('Parent ID'),
          start: timeOf(field('Start time')),
          end: timeOf(field('End time')),
          status: field('Status code'),
          statusMessage: field('Status message'),
          attributes: attributesOf(span),
        };
      });
    });
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^ +-> ([^:]+): (.*)$/gm)].map(([, name, value]) => [name!, value!]));
}

/** Milliseconds of a time as Go prints it. */
function timeOf(text: string): number {
  return Date.parse(text.replace(/^(\S+) (\S+) .*$/, '$1T$2Z').replace(/(\.\d{3})\d*Z$/, '$1Z'));
}
