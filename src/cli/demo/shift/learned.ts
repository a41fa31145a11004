import type { ShownAdaptation } from '../../../adaptation/shown-adaptation.js';

/**
 * Reads the picker's page of learned costs.
 * @throws {Error} naming the status, when there is no such page.
 */
export async function learnedCosts(metricsUrl: string): Promise<ShownAdaptation> {
  const url = new URL('/debug/adaptation', metricsUrl);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answers with status ${response.status}`);
  return (await response.json()) as ShownAdaptation;
}
