import { z } from 'zod';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews } from '../hooks/hooks.js';
import { definePlugin } from '../plugin.js';

/** Header that names the one endpoint that a request may go to; the model server does not get it. */
export const PIN_HEADER = 'x-llm-d-pin-host-port';

/** An address in the one spelling that equal addresses share; undefined = it is none with a port. */
function spelled(address: string): string | undefined {
  if (!/^(?:\d+(?:\.\d+){3}|\[[\da-f:.]+\]):\d{1,5}$/i.test(address) || !URL.canParse(`tcp://${address}`)) {
    return undefined;
  }
  // Schemes of the web have spellings of their own for addresses of version 4, and a port that is left out.
  const { hostname, port } = new URL(`tcp://${address}`);
  return `${hostname}:${Number(port)}`;
}

export const endpointPinScreener = definePlugin({
  type: 'endpoint-pin-screener',
  kinds: ['screener'],
  stability: 'Alpha',
  doc:
    `Keeps only the endpoint whose address the header ${PIN_HEADER} names, as \`ip:port\`; a request whose endpoint ` +
    'is gone is refused with 503. Requests without the header may go anywhere.',
  parameters: () => z.strictObject({}),
  host: () => ({
    screen(request: HookRequest, endpoints: EndpointViews): readonly number[] | undefined {
      const pin = request.headers.get(PIN_HEADER);
      if (pin === undefined) return undefined;
      const wanted = spelled(pin.trim());
      if (wanted === undefined) return [];
      return endpoints.slots.filter((slot) => spelled(endpoints.at(slot)?.address ?? '') === wanted);
    },
  }),
});
