import { z } from 'zod';
import type { OutgoingHeaders } from '../hooks/hooks.js';
import { definePlugin, type Placement } from '../plugin.js';
import { stageHeaders } from './stage-headers.js';

const shared = {
  kinds: ['header-processor'],
  stability: 'Beta',
  parameters: () =>
    z.strictObject({
      prefillProfile: z.string().default('prefill').describe('Profile whose pick goes into x-prefiller-host-port.'),
      encodeProfile: z.string().default('encode').describe('Profile whose picks go into x-encoder-hosts-ports.'),
    }),
} as const;

function host({ prefillProfile, encodeProfile }: z.output<ReturnType<typeof shared.parameters>>) {
  return {
    placed: (_request: unknown, { picks }: Placement, _endpoints: unknown, headers: OutgoingHeaders) => {
      for (const [name, value] of stageHeaders(picks.get(prefillProfile), picks.get(encodeProfile))) {
        headers.set(name, value);
      }
    },
  };
}

export const disaggHeadersHandler = definePlugin({
  type: 'disagg-headers-handler',
  deprecated: { replacement: 'disagg-profile-handler' },
  doc: 'Tells the answering endpoint where prefill and encoding run, as disagg-profile-handler does by itself.',
  ...shared,
  host,
});

export const prefillHeaderHandler = definePlugin({
  type: 'prefill-header-handler',
  deprecated: { replacement: 'disagg-profile-handler' },
  doc: 'An older name of disagg-headers-handler.',
  ...shared,
  host,
});
