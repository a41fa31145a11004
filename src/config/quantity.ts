const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
export const QUANTITY_FORM = /^([+-]?(?:\d+\.?\d*|\.\d+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+|)$/;
/** Bound of a quantity in Kubernetes, whose quantities are 64-bit integers. */
const LARGEST = 2 ** 63;

export const QUANTITY_EXPECTED = 'expected a quantity such as 1Gi, 500Mi, 1k or 1000';

/** A Kubernetes quantity, rounded away from zero to a whole number; undefined when it is none or beyond 64 bits. */
export function parseQuantity(text: string): number | undefined {
  const match = QUANTITY_FORM.exec(text);
  if (match === null) return undefined;
  const [, digits, suffix] = match;
  const scale = SUFFIXES[suffix!] ?? Number(`1${suffix}`);
  const value = Number(digits) * scale;
  if (!Number.isFinite(value) || Math.abs(value) >= LARGEST) return undefined;
  return value < 0 ? Math.floor(value) : Math.ceil(value);
}

/** Value of a quantity that a schema has already checked. */
export function quantityValue(checked: string | number): number {
  const value = parseQuantity(String(checked));
  if (value === undefined) throw new TypeError(`not a quantity: ${checked}`);
  return value;
}
