// What follows for an order from a problem that its directory answers (RFC 8555 §6.7).

import type { LeftOut, OrderEvent } from "./order-step.ts";

export type DirectoryProblem = {
  readonly status: number;
  /** The type without its prefix, "" if none was said. */
  readonly type: string;
  /** What a person reads. */
  readonly text: string;
  /** The hosts that it is for, where it says so. */
  readonly hosts: LeftOut;
  readonly retryAfterMs: number | undefined;
};

/** What each type means for people who never read the RFC. */
const explained: Readonly<Record<string, string>> = {
  externalAccountRequired:
    "the directory makes accounts for its own customers only (external account binding), and such accounts are not supported: order there by hand and upload the certificate",
  userActionRequired: "the directory wants its account's owner to do something first",
  caa: "a CAA record of the domain lets others issue its certificates, not this directory",
  rejectedIdentifier: "the directory issues no certificate for this name",
};

/** Writes a problem as one line: what it means, what the directory says, and its type. */
export function problemText(type: string, detail: string | undefined): string {
  const said = detail === undefined || detail === "" ? "it gives no reason" : detail;
  const meaning = Object.hasOwn(explained, type) ? `${explained[type]}; ` : "";
  const named = type === "" ? "" : ` (${type})`;
  return `${meaning}the directory says: ${said.slice(0, 500)}${named}`;
}

/** A directory that limits without saying for how long is left alone for an hour. */
const limitedMs = 3_600_000;

/** These pass: the order is as good as before. */
const passing: ReadonlySet<string> = new Set([
  "badNonce",
  "serverInternal",
  "orderNotReady",
  "accountDoesNotExist",
]);

export function eventOfProblem({
  status,
  type,
  text: reason,
  hosts,
  retryAfterMs,
}: DirectoryProblem): OrderEvent {
  if (type === "rateLimited" || status === 429)
    return { kind: "put-off", reason, retryAfterMs: retryAfterMs ?? limitedMs };
  if (status === 404) return { kind: "forgotten", reason };
  if (status >= 500 || passing.has(type)) return { kind: "put-off", reason, retryAfterMs };
  return { kind: "refused", reason, retryAfterMs, hosts };
}
