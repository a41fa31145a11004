import { z } from 'zod';
import { definePlugin } from '../plugin.js';

/**
 * Headers that agents send by themselves: Claude Code, OpenCode, Codex, and older versions of Codex with an underscore.
 */
const AGENT_HEADERS = ['x-claude-code-session-id', 'x-session-affinity', 'session-id', 'session_id'];

const parameters = z.strictObject({
  additionalSessionHeaders: z
    .array(z.string())
    .default([])
    .describe(`Headers to look at before ${AGENT_HEADERS.join(', ')}; empty names are left out.`),
});

export const agentIdentity = definePlugin({
  type: 'agent-identity',
  kinds: ['header-processor'],
  stability: 'Alpha',
  doc:
    'Makes the session of a coding agent the flow of its requests, where a request names no fairness id itself. ' +
    'Leaves it as the attribute agent-identity too.',
  parameters,
  produces: ['agent-identity'],
  host: ({ additionalSessionHeaders }) => {
    const additional = additionalSessionHeaders.map((name) => name.trim().toLowerCase());
    const names = [...additional, ...AGENT_HEADERS].filter((name) => name !== '');
    return {
      requestHeaders: (request) => {
        for (const name of names) {
          const session = request.headers.get(name)?.trim();
          if (session === undefined || session === '') continue;
          request.fairnessId ??= session;
          request.attributes.set('agent-identity', session);
          return;
        }
      },
    };
  },
});
