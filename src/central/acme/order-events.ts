// What the answers of a directory are as events of an order.

import type { LeftOut, OrderEvent } from "../../core/acme/order-step.ts";
import type { AcmeAuthorization, DirectoryOrder } from "../../wire/acme.ts";
import type { PublishedChallenge } from "../store/acme/acme-order-rows.ts";
import { problemOf, type DirectoryReply, type Signer } from "./directories.ts";
import { keyAuthorization } from "./jws.ts";

export function working({
  retryAfterMs,
}: {
  readonly retryAfterMs: number | undefined;
}): OrderEvent {
  return { kind: "working", retryAfterMs };
}

export function refusedFor(reason: string, hosts: LeftOut = {}): OrderEvent {
  return { kind: "refused", reason, retryAfterMs: undefined, hosts };
}

/** A directory is its customer's word: one that lists hosts of others would have central look at them. */
export function strangeProofs(what: string): Extract<DirectoryReply<never>, { kind: "problem" }> {
  const text = `the directory asks for ${what}`;
  const problem = { status: 400, type: "", text, hosts: {}, retryAfterMs: undefined };
  return { kind: "problem", problem };
}

/** Returns the challenges that are to be answered, or why the order cannot go on. */
export function challengesToTell(
  { key }: Signer,
  authorizations: readonly AcmeAuthorization[],
): PublishedChallenge[] | OrderEvent {
  const found: PublishedChallenge[] = [];
  for (const { identifier, status, challenges } of authorizations) {
    if (status !== "pending") continue;
    const host = identifier.value.toLowerCase();
    const token = challenges.find(({ type }) => type === "http-01")?.token;
    if (token === undefined)
      return refusedFor(`the directory offers no HTTP-01 for ${host}`, {
        [host]: "the directory offers no HTTP-01",
      });
    found.push({ host, token, keyAuthorization: keyAuthorization(key, token) });
  }
  return found;
}

/** Says why an order has failed, in the directory's own words. */
export function orderFailed(
  { error }: DirectoryOrder,
  authorizations: readonly AcmeAuthorization[],
): OrderEvent {
  const hosts = Object.fromEntries(
    authorizations
      .filter(({ status }) => !["pending", "valid"].includes(status))
      .map(({ identifier, status, challenges }) => {
        const told = challenges.find((one) => one.error !== undefined)?.error;
        const why = told === undefined ? `its proof is ${status}` : problemOf(403, told).text;
        return [identifier.value, why] as const;
      }),
  );
  const own = error === undefined ? undefined : problemOf(403, error);
  const all = { ...own?.hosts, ...hosts };
  const words = Object.entries(all).map(([host, why]) => `${host}: ${why}`);
  const reason = words.length > 0 ? words.join("; ") : (own?.text ?? "the order is invalid");
  return refusedFor(reason.slice(0, 2_000), all);
}
