import { readPlainText, SECRET_BYTES_MAX } from '../../runtime/plain-file.js';
import { readProblem } from '../../runtime/read-problem.js';
import type { PickedEndpoint, Placement } from '../decision.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews, HookContext, HookPlugin, HookResponse } from '../hooks/hooks.js';
import type { SessionAffinityParameters } from './session-affinity-parameters.js';
import { SessionBindings } from './session-bindings.js';
import { sessionAttribute } from './session-id.js';
import { readableTokens, SignedTokens, type TokenFormat } from './session-token.js';

/** Remembers the endpoints of sessions. */
export interface SessionAffinity extends Pick<HookPlugin, 'responseHeaders'> {
  /** As the hook of the same name. */
  placed(request: HookRequest, placement: Placement, endpoints: EndpointViews): void;
  /** Slot for the request among those that it may use. */
  preferred(request: HookRequest, endpoints: EndpointViews): number | undefined;
}

/**
 * The strategy that the parameters name.
 * @param options followsPicks: a session moves with every pick, not only when its endpoint could not be picked
 * @throws when the key file cannot be read
 */
export function sessionAffinity(
  parameters: SessionAffinityParameters,
  context: HookContext,
  { followsPicks }: { readonly followsPicks: boolean } = { followsPicks: false },
): SessionAffinity {
  return parameters.strategy === 'session_id'
    ? new BoundSessions(parameters, context, followsPicks)
    : new TokenSessions(parameters.encodedEndpointHeaderConfig, parameters.profileName);
}

/** The pick to which a session is bound; undefined when that profile did not run. */
function pickOf(placement: Placement, profile: string): PickedEndpoint | undefined {
  if (profile === '') return placement.endpoints[0];
  return placement.picks.get(profile)?.[0];
}

function allowedSlot(id: string, endpoints: EndpointViews): number | undefined {
  const slot = endpoints.slotOf(id);
  return slot !== undefined && endpoints.slots.includes(slot) ? slot : undefined;
}

/** encoded_endpoint_header: the client carries the session; the picker stores nothing. */
class TokenSessions implements SessionAffinity {
  readonly #header: string;
  readonly #profile: string;
  readonly #tokens: TokenFormat;

  constructor(
    { header, tokenFormat, keyFile }: SessionAffinityParameters['encodedEndpointHeaderConfig'],
    profile: string,
  ) {
    this.#header = header.trim().toLowerCase() || 'x-session-token';
    this.#profile = profile;
    this.#tokens = tokenFormat === 'signed' ? new SignedTokens(readKey(keyFile!)) : readableTokens;
  }

  preferred(request: HookRequest, endpoints: EndpointViews): number | undefined {
    const token = request.headers.get(this.#header);
    if (token === undefined || token === '') return undefined;
    const id = this.#tokens.decode(token, () => endpoints.slots.map((slot) => endpoints.at(slot)!.endpoint.id));
    return id === undefined ? undefined : allowedSlot(id, endpoints);
  }

  /** Remembers the pick until the answer comes, as a separate profile needs it. */
  placed(request: HookRequest, placement: Placement): void {
    if (this.#profile === '') return;
    const pick = pickOf(placement, this.#profile);
    if (pick !== undefined) request.attributes.set(this.#attribute, pick.endpoint.id);
  }

  responseHeaders(request: HookRequest, response: HookResponse): void {
    const id = this.#profile === '' ? response.endpoint.endpoint.id : request.attributes.get(this.#attribute);
    if (typeof id === 'string') response.setHeader(this.#header, this.#tokens.encode(id));
  }

  get #attribute(): string {
    return `session-affinity ${this.#header} ${this.#profile}`;
  }
}

function readKey(file: string): Buffer {
  try {
    return Buffer.from(readPlainText(file, SECRET_BYTES_MAX).trim());
  } catch (error) {
    throw new Error(`keyFile: ${file} ${readProblem(error)}`);
  }
}

/** A binding in messages between the shards. */
interface SharedBinding {
  readonly session: string;
  readonly endpoint: string;
  readonly boundAt: number;
  readonly usedAt: number;
}

/** session_id: the picker remembers the endpoint of each session, on all shards. */
class BoundSessions implements SessionAffinity {
  readonly #sources: SessionAffinityParameters['sessionIdConfig']['sources'];
  readonly #profile: string;
  readonly #bindings: SessionBindings;
  readonly #now: () => number;
  readonly #tell: (binding: SharedBinding) => void;
  /** Minimum interval between two messages to the other shards about uses of a session. */
  readonly #toldAgainMs: number;

  /** Whether a session moves with every pick. */
  readonly #followsPicks: boolean;

  constructor(
    { sessionIdConfig, profileName }: SessionAffinityParameters,
    context: HookContext,
    followsPicks: boolean,
  ) {
    const { sources, evictionTtlSeconds, evictionSweepSeconds, maxSessions } = sessionIdConfig;
    const ttlMs = (evictionTtlSeconds || 300) * 1_000;
    this.#sources = sources.length > 0 ? sources : [{ header: 'x-session-id' }];
    this.#profile = profileName;
    this.#followsPicks = followsPicks;
    this.#bindings = new SessionBindings({
      capacity: maxSessions,
      ttlMs,
      sweepMs: (evictionSweepSeconds || 10) * 1_000,
    });
    this.#toldAgainMs = ttlMs / 10;
    this.#now = context.now;
    this.#tell = context.share((message) => this.#heard(message as SharedBinding));
  }

  preferred(request: HookRequest, endpoints: EndpointViews): number | undefined {
    const session = this.#sessionOf(request);
    const binding = session === undefined ? undefined : this.#bindings.find(session, this.#now());
    return binding === undefined ? undefined : allowedSlot(binding.endpoint, endpoints);
  }

  /**
   * Unless it follows picks, a session moves only when its endpoint could not be picked, not when a picker preferred
   * another one.
   */
  placed(request: HookRequest, placement: Placement, endpoints: EndpointViews): void {
    const session = this.#sessionOf(request);
    const pick = pickOf(placement, this.#profile);
    if (session === undefined || pick === undefined) return;
    const nowMs = this.#now();
    const binding = this.#bindings.find(session, nowMs);
    const { id } = pick.endpoint;
    if (binding === undefined || (binding.endpoint !== id && this.#leaves(binding.endpoint, endpoints))) {
      this.#bindings.bind(session, { endpoint: id, boundAt: nowMs, usedAt: nowMs }, nowMs);
      this.#tell({ session, endpoint: id, boundAt: nowMs, usedAt: nowMs });
    } else if (binding.endpoint === id) {
      const { endpoint, boundAt, usedAt } = binding;
      this.#bindings.touch(session, nowMs);
      if (nowMs - usedAt > this.#toldAgainMs) this.#tell({ session, endpoint, boundAt, usedAt: nowMs });
    }
  }

  #leaves(id: string, endpoints: EndpointViews): boolean {
    return this.#followsPicks || allowedSlot(id, endpoints) === undefined;
  }

  /**
   * Takes over a binding or a use from another shard. Every shard keeps the younger of two bindings, and of two with
   * the same time the one with the lesser endpoint, so that all agree.
   */
  #heard({ session, endpoint, boundAt, usedAt }: SharedBinding): void {
    const nowMs = this.#now();
    const own = this.#bindings.find(session, nowMs);
    if (own !== undefined && own.endpoint !== endpoint) {
      if (own.boundAt > boundAt || (own.boundAt === boundAt && own.endpoint < endpoint)) return;
    }
    this.#bindings.bind(session, { endpoint, boundAt, usedAt: Math.max(usedAt, own?.usedAt ?? 0) }, nowMs);
  }

  #sessionOf(request: HookRequest): string | undefined {
    for (const { header, attribute, producer } of this.#sources) {
      const found =
        header !== undefined && header !== ''
          ? request.headers.get(header.trim().toLowerCase())
          : request.attributes.get(attribute ?? sessionAttribute(producer ?? ''));
      if (typeof found === 'string' && found.trim() !== '') return found.trim();
    }
    return undefined;
  }
}
