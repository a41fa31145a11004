import { readFileSync } from 'node:fs';
import type { Container } from './helm.ts';
import type { Chart, ValueSetName } from './value-sets.ts';

/** What of an object cannot change in an upgrade, or is what others hold on to. */
export interface ObjectFacts {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly selector?: Readonly<Record<string, string>>;
  readonly ports?: readonly { readonly name: string; readonly port: number }[];
  readonly rules?: readonly object[];
  readonly appProtocol?: string;
  readonly roleRef?: string;
  readonly subject?: string;
  readonly strategy?: string;
  readonly containers?: readonly string[];
}

/** What llm-d-router's chart renders for a value set. */
export interface ReleaseFacts {
  readonly chart: Chart;
  readonly values: Readonly<Record<string, unknown>>;
  readonly objects: readonly ObjectFacts[];
  readonly picker: Pick<Container, 'args' | 'env'> & {
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly livenessProbe: GrpcProbe;
    readonly readinessProbe: GrpcProbe;
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  };
  readonly grace: number;
  /** The file that --config-file names, parsed. */
  readonly configuration: unknown;
}

export interface GrpcProbe {
  readonly grpc: { readonly port: number; readonly service: string };
}

interface Facts {
  readonly sets: Readonly<Record<ValueSetName, ReleaseFacts>>;
  /** Default values of the charts, without Envoy's configuration. */
  readonly defaults: Readonly<Record<Chart, Readonly<Record<string, unknown>>>>;
}

/** Written by peer-facts.ts from llm-d-router's charts of August 2026. */
export const LLM_D_ROUTER = JSON.parse(readFileSync(new URL('llm-d-router.json', import.meta.url), 'utf8')) as Facts;
