import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { AGENT_SESSION } from '../session/session-id.js';

/**
 * Headers that agents send by themselves, and those by which they tell their sub-agents apart, which send the header of
 * the agent that they work for. Claude Code: its page "LLM gateway"; agent ids since 2.1.258 (BYK/loreai#1701).
 * OpenCode: its sub-agents have sessions of their own. Codex: codex-rs/codex-api/src/requests/headers.rs; older ones
 * send an underscore; threads since 0.147 (ranxianglei/billion-context#317). Clients of Dynamo: docs/agents there.
 */
const AGENT_HEADERS: Readonly<Record<string, readonly string[]>> = {
  'x-claude-code-session-id': ['x-claude-code-agent-id'],
  'x-session-affinity': [],
  'session-id': ['thread-id'],
  session_id: ['thread-id'],
  'x-dynamo-session-id': [],
};

const parameters = () =>
  z.strictObject({
    additionalSessionHeaders: z
      .array(z.string())
      .default([])
      .describe(`Headers to look at before ${Object.keys(AGENT_HEADERS).join(', ')}; empty names are left out.`),
  });

export const agentIdentity = definePlugin({
  type: 'agent-identity',
  kinds: ['header-processor'],
  stability: 'Alpha',
  doc:
    'Makes the session of a coding agent the flow of its requests, where a request names no fairness id itself. ' +
    'Leaves it as the attribute agent-identity too. Sessions (flowControl.sessions) are told apart by it, and those ' +
    'of sub-agents by their own ids.',
  parameters,
  produces: ['agent-identity'],
  sessionAttribute: () => AGENT_SESSION,
  host: ({ additionalSessionHeaders }) => {
    const additional = additionalSessionHeaders.map((name) => name.trim().toLowerCase());
    const names = [...additional, ...Object.keys(AGENT_HEADERS)].filter((name) => name !== '');
    return {
      requestHeaders: (request) => {
        for (const name of names) {
          const session = request.headers.get(name)?.trim();
          if (session === undefined || session === '') continue;
          request.fairnessId ??= session;
          request.attributes.set('agent-identity', session);
          const agents = (AGENT_HEADERS[name] ?? []).flatMap((header) => request.headers.get(header)?.trim() || []);
          request.attributes.set(AGENT_SESSION, [session, ...agents].join(' '));
          return;
        }
      },
    };
  },
});
