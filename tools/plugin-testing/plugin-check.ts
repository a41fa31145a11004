/**
 * One rule that a plugin has to keep. Hangs in any test runner: `for (const { name, run } of checksOf(plugin))
 * test(name, run)`.
 */
export interface PluginCheck {
  /** The rule, as a sentence that begins with the extension point. */
  readonly name: string;
  /**
   * @throws PluginFault when the plugin breaks the rule, and anything that the plugin throws where the rule forbids it
   */
  readonly run: () => void;
}

/** Thrown by a check: the fault of the plugin, in one line. */
export class PluginFault extends Error {
  override readonly name = 'PluginFault';
}

/** @throws PluginFault with the text unless the condition holds */
export function must(condition: boolean, fault: () => string): asserts condition {
  if (!condition) throw new PluginFault(fault());
}

/** A value as short text for a fault. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
