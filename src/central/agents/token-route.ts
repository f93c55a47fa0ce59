// `POST /agent-api/v1/token` turns name16 and secret16 into a bearer token (RFC 6749 §4.4). Tokens are random
// and kept only as SHA-256.
//
// Limits: failures per address and per name, tokens per name. Thousands of agents may stand behind one
// address, and whoever has the right secret is not guessing. Others' failures do not shut out an address that
// proved the name's secret before; otherwise anyone who knows a public name16 could keep its agent from
// renewing.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { readBody } from "../../base/http-listener.ts";
import { sealNextSecret } from "../../base/vault-seal.ts";
import { type Name16, parseName16, parseSecret16, sha256Of } from "../../core/ids.ts";
import { clockSkewMaxMs, nextSecretHeader, type TokenAnswer } from "../../wire/token.ts";
import { agentAnswer, refusal, type AgentAnswer } from "./answers.ts";
import { createRateLimit } from "./rate-limit.ts";
import { RotatedSecrets, type RotatedSecretsDeps } from "./rotated-secrets.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";
import type { SiteSecrets } from "../store/journal/agent-tokens.ts";

export const tokenLifetimeS = 3_600;
const tokenBytes = 32;
const formBytesMax = 4_096;
const keysMax = 20_000; // Some 4 MB of buckets.
/**
 * The limit of failures by address. The burst is how many agents of a fleet that starts at once may wait for
 * their answers at a time.
 */
const perAddress = { burst: 300, perSecond: 5, keysMax };
/** The limit of tokens by name: an agent asks every 40 minutes, and at each start. */
const tokensPerName = { burst: 60, perSecond: 1, keysMax };
const failuresPerName = { burst: 20, perSecond: 1 / 6, keysMax };

export type TokenDeps = {
  readonly store: AgentStore;
  readonly health: RotatedSecretsDeps["health"];
  readonly log: RotatedSecretsDeps["log"];
  readonly now: () => Date;
  readonly monotonicMs: () => number;
  readonly randomBytes: (count: number) => Buffer;
  readonly addressOf: (request: IncomingMessage) => string;
  /** Among how many centrals limits are divided; 1 if absent. */
  readonly centrals?: () => number;
};

export function createTokenRoute(
  deps: TokenDeps,
): (request: IncomingMessage) => Promise<AgentAnswer> {
  const attempts = createRateLimit(perAddress, deps.monotonicMs, deps.centrals);
  const failures = createRateLimit(failuresPerName, deps.monotonicMs, deps.centrals);
  const issued = createRateLimit(tokensPerName, deps.monotonicMs, deps.centrals);
  const proven = new Set<string>();
  const rotated = new RotatedSecrets(deps);
  return async (request) => {
    const address = deps.addressOf(request);
    const waitMs = attempts.take(address);
    if (waitMs > 0) return tooMany(waitMs, "this address");
    const read = await readBody(request, formBytesMax);
    if (!read.ok) return refusal("too_large", "the form is too large");
    if (
      new URLSearchParams(read.body.toString("latin1")).get("grant_type") !== "client_credentials"
    )
      return refusal("invalid", "grant_type must be client_credentials");
    const basic = parseBasic(request.headers.authorization);
    if (basic === undefined)
      return refusal("unknown_name", "Authorization must be Basic name16:secret16");
    const pair = `${basic.name} ${address}`;
    const nameWaitMs = proven.has(pair) ? 0 : failures.waitMs(basic.name);
    if (nameWaitMs > 0) return tooMany(nameWaitMs, "this name16");

    const site = await deps.store.credentials(basic.name);
    const match = site === undefined ? undefined : matchOf(site, basic.secret);
    if (site === undefined || match === undefined) {
      failures.take(basic.name);
      return site === undefined
        ? refusal("unknown_name", `no deployment site has the name16 ${basic.name}`)
        : refusal("wrong_secret", `the secret is not that of ${basic.name}`);
    }
    remember(proven, pair);
    attempts.give(address);
    const issuedWaitMs = issued.take(basic.name);
    if (issuedWaitMs > 0) return tooMany(issuedWaitMs, "this name16");
    if (site.deleted) return refusal("site_deleted", "this deployment site was deleted");
    const skewed = clockFault(request.headers.date, deps.now());
    if (skewed !== undefined) return skewed;
    const { graceEnds } = match;
    rotated.take({ name16: basic.name, address, graceEnds }, deps.now().getTime());
    const answer = await issue(deps, site.deploymentSiteId);
    return graceEnds === undefined ? answer : { ...answer, headers: nextSecret(basic, site) };
  };
}

function tooMany(waitMs: number, of: string): AgentAnswer {
  return refusal("too_many", `too many attempts of ${of}`, {
    retryAfterS: Math.ceil(waitMs / 1_000),
  });
}

/**
 * Parses Basic credentials. A name of another form cannot be right; a secret of another form is compared all
 * the same.
 */
function parseBasic(header: string | undefined): { name: Name16; secret: string } | undefined {
  const encoded = /^basic ([\w+/=-]{1,512})$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const [, name, secret] =
    /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, "base64").toString("utf8")) ?? [];
  const name16 = parseName16(name);
  return name16 === undefined
    ? undefined
    : { name: name16, secret: parseSecret16(secret) ?? "none" };
}

/** Compares in constant time, with every secret. Returns when the grace of the one that matches ends; undefined: it is the current one. */
function matchOf(
  { current, before }: SiteSecrets,
  given: string,
): { readonly graceEnds: string | undefined } | undefined {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const all = [{ secret: current, graceEnds: undefined }, ...before];
  const matches = all.filter(({ secret }) => timingSafeEqual(digest(secret), digest(given)));
  return matches[0];
}

/** The new secret, for a host that has the one before. */
function nextSecret(
  { name, secret }: { readonly name: Name16; readonly secret: string },
  { current }: SiteSecrets,
): Record<string, string> {
  return { [nextSecretHeader]: sealNextSecret(current, { name16: name, secret16: secret }) };
}

function remember(proven: Set<string>, pair: string): void {
  proven.delete(pair);
  proven.add(pair);
  const oldest = proven.size > keysMax ? proven.values().next().value : undefined;
  if (oldest !== undefined) proven.delete(oldest);
}

/** Judges the caller's clock. A caller that sends no Date cannot be judged. */
export function clockFault(header: string | undefined, now: Date): AgentAnswer | undefined {
  if (header === undefined) return undefined;
  const skewMs = Date.parse(header) - now.getTime();
  if (Number.isNaN(skewMs)) return refusal("invalid", "the Date header is no HTTP date");
  if (Math.abs(skewMs) <= clockSkewMaxMs) return undefined;
  return refusal(
    "clock_skew",
    `the clocks differ by ${Math.round(Math.abs(skewMs) / 1_000)} s; central has ${now.toISOString()}`,
    { hint: "Start time synchronization on both hosts." },
  );
}

async function issue(deps: TokenDeps, deploymentSiteId: number): Promise<AgentAnswer> {
  const token = deps.randomBytes(tokenBytes).toString("base64url");
  const expiresAt = new Date(deps.now().getTime() + tokenLifetimeS * 1_000);
  await deps.store.saveToken(deploymentSiteId, sha256Of(token), expiresAt);
  return agentAnswer({
    access_token: token,
    token_type: "Bearer",
    expires_in: tokenLifetimeS,
    deployment_site_id: deploymentSiteId,
    epoch: deps.store.epoch,
  } satisfies TokenAnswer);
}
