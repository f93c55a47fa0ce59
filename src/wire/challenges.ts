// The open challenges of a domain: what the directory of ACME that a certificate was ordered from fetches from the
// domain's hosts.
//
// The snapshot has no field for them, so that agents of the release before take it. Where an instance takes a snapshot
// in place of the entry, central tells the site once more.

import { Type, type Static } from "typebox";
import { closed } from "./validate.ts";
import { HostText, Timestamp } from "./parts.ts";

/** Those of a domain at once: two orders of 100 names. Further orders wait for room at central. */
export const challengesMax = 200;

export const Challenge = closed({
  host: HostText,
  /** A part of a path (RFC 8555 §8.3). */
  token: Type.String({ pattern: "^[A-Za-z0-9_-]{1,255}$" }),
  /** The token, a dot and the thumbprint of the account's key. */
  key_authorization: Type.String({ pattern: "^[A-Za-z0-9_.-]{1,320}$" }),
  /** When it ends by itself, should central never say so. */
  until: Timestamp,
});
export type Challenge = Static<typeof Challenge>;

export const ChallengesChanged = closed({
  domain: HostText,
  challenges: Type.Array(Challenge, { maxItems: challengesMax }),
});
