import { agentic, chat, reasoning, subAgents, toolCalls } from './conversations.js';
import type { WorkloadKind } from './generator.js';
import { crowd, documents, separate, sharedPrefix, tenants } from './single-requests.js';
import { azure, csv, jsonl, mooncake } from './traces.js';

/** Every kind of traffic that a suite can name. */
export const workloadKinds: readonly WorkloadKind[] = [
  sharedPrefix,
  separate,
  documents,
  chat,
  agentic,
  subAgents,
  reasoning,
  toolCalls,
  tenants,
  crowd,
  mooncake,
  azure,
  csv,
  jsonl,
];
