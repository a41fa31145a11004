import { describe, expect, test } from 'vitest';
import { skipReason, validate } from './envoy.ts';

describe.skipIf(skipReason !== '')(`the shipped Envoy configurations${skipReason}`, () => {
  const shipped = [
    ...(['envoy.yaml', 'envoy-fail-open.yaml', 'envoy-socket.yaml'] as const),
    ...(['envoy-answer-heads.yaml', 'envoy-answer-share.yaml', 'envoy-headers-only.yaml'] as const),
  ];
  test.each(shipped)('%s is valid', (configuration) => {
    const { status, output } = validate(configuration);
    expect(output).toContain(' OK');
    expect(status).toBe(0);
  });
});
