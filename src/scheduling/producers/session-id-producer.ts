import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { cookieValue, sessionAttribute } from '../session/session-id.js';

const parameters = () =>
  z
    .strictObject({
      headerName: z.string().optional().describe('Request header whose value is the session id.'),
      cookieName: z.string().optional().describe('Cookie whose value is the session id.'),
    })
    .refine(({ headerName, cookieName }) => Boolean(headerName) !== Boolean(cookieName), {
      error: 'exactly one of headerName or cookieName must be set',
    });

export const sessionIdProducer = definePlugin({
  type: 'session-id-producer',
  kinds: ['producer'],
  stability: 'Beta',
  doc: 'Finds the session id of a request in a header or a cookie, for session affinity and other plugins.',
  parameters,
  produces: ['session-id'],
  sessionAttribute: (_, name) => sessionAttribute(name),
  host: ({ headerName, cookieName }, { name }) => {
    const attribute = sessionAttribute(name);
    const header = headerName?.trim().toLowerCase();
    return {
      requestHeaders: ({ headers, attributes }) => {
        const found = header ? headers.get(header) : cookieValue(headers.get('cookie') ?? '', cookieName!);
        if (found !== undefined && found !== '') attributes.set(attribute, found);
      },
    };
  },
});
