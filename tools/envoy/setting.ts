/**
 * A value of an Envoy configuration with its path from the root. An absent setting has the value undefined and a path
 * too.
 */
export interface Setting {
  readonly path: readonly (string | number)[];
  readonly value: unknown;
}

/**
 * The setting below another one, step by step. Envoy takes each name in snake case and in camel case, and so does this.
 */
export function child(of: Setting, ...names: readonly string[]): Setting {
  return names.reduce<Setting>(({ path, value }, name) => {
    if (!isObject(value)) return { path: [...path, name], value: undefined };
    const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const key = name in value || !(camel in value) ? name : camel;
    return { path: [...path, key], value: value[key] };
  }, of);
}

/** Entries of a list; none of an absent one. */
export function items({ path, value }: Setting): readonly Setting[] {
  return Array.isArray(value) ? value.map((item: unknown, index) => ({ path: [...path, index], value: item })) : [];
}

/** Entries of a map, such as `typed_per_filter_config`. */
export function entries(of: Setting): readonly (readonly [string, Setting])[] {
  const { path, value } = of;
  return isObject(value)
    ? Object.entries(value).map(([key, item]) => [key, { path: [...path, key], value: item }] as const)
    : [];
}

export function isSet({ value }: Setting): boolean {
  return value !== undefined && value !== null;
}

export function textOf({ value }: Setting): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A number; 64-bit ones are texts in a configuration dump, and a wrapped one may be written as `{value: 5}`. */
export function numberOf(setting: Setting): number | undefined {
  const { value } = setting;
  if (isObject(value)) return numberOf(child(setting, 'value'));
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : undefined;
}

export function isOn(setting: Setting): boolean {
  return isObject(setting.value) ? isOn(child(setting, 'value')) : setting.value === true || setting.value === 'true';
}

/** Milliseconds of a duration: `1.5s`, or seconds and nanos. */
export function durationMsOf(setting: Setting): number | undefined {
  const { value } = setting;
  if (isObject(value)) {
    return (numberOf(child(setting, 'seconds')) ?? 0) * 1e3 + (numberOf(child(setting, 'nanos')) ?? 0) / 1e6;
  }
  const seconds = typeof value === 'string' ? /^(-?\d+(?:\.\d+)?)s$/.exec(value)?.[1] : undefined;
  return seconds === undefined ? undefined : Number(seconds) * 1e3;
}

/** Last part of the type of a `typed_config`, as `ExternalProcessor`. */
export function typeOf(setting: Setting): string | undefined {
  return /(?:^|[./])(\w+)$/.exec(textOf(child(setting, '@type')) ?? '')?.[1];
}

/** The path as `static_resources.clusters[1].circuit_breakers`. */
export function pathText(path: Setting['path']): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    const plain = /^[\w@-]+$/.test(step) ? step : `["${step}"]`;
    return text === '' || plain.startsWith('[') ? `${text}${plain}` : `${text}.${plain}`;
  }, '');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
