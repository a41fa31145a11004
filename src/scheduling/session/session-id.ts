/** Attribute with the session id of the session-id-producer `name`: its own name, as for agent-identity. */
export function sessionAttribute(name: string): string {
  return name;
}

/** Attribute with the name by which agent-identity tells conversations apart: sub-agents have their own. */
export const AGENT_SESSION = 'agent-session';

/** Bytes up to which a value of a header counts as the name of a session. */
const NAME_MAX = 256;

/** The name of a session that plugins have left under an attribute; undefined = none, or it is no name. */
export function sessionNameOf(attributes: ReadonlyMap<string, unknown>, attribute: string): string | undefined {
  const name = attributes.get(attribute);
  return typeof name === 'string' && name !== '' && name.length <= NAME_MAX ? name : undefined;
}

/** Value of a cookie in a `Cookie` header (RFC 6265 §4.2.1) without quotes around it. */
export function cookieValue(header: string, name: string): string | undefined {
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue;
    const value = pair.slice(equals + 1).trim();
    return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
  }
  return undefined;
}
