// The HTTP-01 challenges of a host that are open: what a directory of ACME fetches to see that the host is its
// customer's (RFC 8555 §8.3).

import type { RequestTarget } from "../http/request-path.ts";

/** The path below which each challenge is answered, by its token. */
export const challengePath = "/.well-known/acme-challenge/";

export type OpenChallenge = {
  /** The text that is answered, byte for byte. */
  readonly keyAuthorization: string;
  /** The time after which the challenge is nobody's any more, ms since the epoch. */
  readonly untilMs: number;
};

/** By token. */
export type OpenChallenges = ReadonlyMap<string, OpenChallenge>;

/** A challenge with its place. */
export type ToldChallenge = OpenChallenge & { readonly host: string; readonly token: string };

/** Returns the challenges of one host; undefined if it has none, as almost always. */
export function challengesOf(
  host: string,
  told: readonly ToldChallenge[],
): OpenChallenges | undefined {
  const own = told.filter((one) => one.host === host);
  if (own.length === 0) return undefined;
  return new Map(
    own.map(({ token, keyAuthorization, untilMs }) => [token, { keyAuthorization, untilMs }]),
  );
}

/**
 * Returns what a request for an open challenge is answered with. Undefined for every other request, also for a token
 * that is not known: a client of ACME that the customer runs at the origin answers that one.
 */
export function challengeAnswer(
  challenges: OpenChallenges,
  method: string,
  target: Pick<RequestTarget, "rawPath"> | undefined,
  nowMs: number,
): string | undefined {
  if (target === undefined || !target.rawPath.startsWith(challengePath)) return undefined;
  if (method !== "GET" && method !== "HEAD") return undefined;
  const open = challenges.get(target.rawPath.slice(challengePath.length));
  return open === undefined || nowMs >= open.untilMs ? undefined : open.keyAuthorization;
}
