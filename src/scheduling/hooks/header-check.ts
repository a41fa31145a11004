/** RFC 9110 §5.6.2: characters of a header name, in lower case. */
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const REFUSED: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'connection', 'host']);

/** The name of a header that a plugin may set, in lower case. @throws RangeError for any other name */
export function headerName(name: string): string {
  const key = name.toLowerCase();
  if (!NAME.test(key) || REFUSED.has(key)) throw new RangeError(`${JSON.stringify(name)} is no header to set`);
  return key;
}

/** The value of header `key`, as it is. @throws RangeError when it has control characters */
export function headerValue(key: string, value: string): string {
  if (!isPrintable(value)) throw new RangeError(`the value of ${key} has control characters`);
  return value;
}

function isPrintable(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return false;
  }
  return true;
}
