import { readFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { shippedEnvoyConfiguration } from '../dist/tools/demo/envoy-process.js';

/** Bounds of an Envoy that was configured for few and short requests. */
const SMALL_BOUNDS = { max_requests: 100, timeout: '3s' };

/** Envoy as shipped, but for bounds that are too small for long answers and many requests. */
export async function envoyWithSmallBounds(port: number, adminPort: number, pickerPort: number): Promise<string> {
  const text = await readFile(shippedEnvoyConfiguration('envoy.yaml'), 'utf8');
  const ports: readonly (readonly [RegExp, number])[] = [
    [/port_value: 8081/, port],
    [/port_value: 19000/, adminPort],
    [/port_value: 9002/, pickerPort],
  ];
  const moved = ports.reduce((rest, [place, value]) => rest.replace(place, `port_value: ${value}`), text);
  const short = moved.replace(' timeout: 86400s\n', ` timeout: ${SMALL_BOUNDS.timeout}\n`);
  const document = parse(short, { merge: true });
  const { clusters } = document.static_resources;
  const picker = clusters.find(({ name }: { name: string }) => name === 'ext_proc');
  const [threshold] = picker.circuit_breakers.thresholds;
  picker.circuit_breakers = { thresholds: [{ ...threshold, max_requests: SMALL_BOUNDS.max_requests }] };
  return stringify(document, { aliasDuplicateObjects: false });
}
