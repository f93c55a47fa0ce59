// What an order knows of times: of its certificate, of the directory's order, and of the window of renewal.

import { X509Certificate } from "node:crypto";
import { renewalName, type Life } from "../../core/acme/renewal.ts";
import type { DirectoryOrder } from "../../wire/acme.ts";
import { openMs } from "../store/acme/acme-challenges.ts";
import type { AcmeOrder } from "../store/acme/acme-order-rows.ts";

/** An order of which the directory does not say when it expires is given up after so long. */
const silentExpiryMs = 6 * 3_600_000;
/** One of which it says that it is over is looked at for so long: orders that are always over would be placed without end. */
const expiryMsMin = 600_000;

/** Whether the directory is asked for the window of renewal, and nothing else is due. */
export function isWindowDue(
  { names, issued, windowAskedMs, attempts, leftOut }: AcmeOrder,
  nowMs: number,
) {
  return (
    issued !== null &&
    issued.renewMs > nowMs &&
    names.every((name) => issued.names.includes(name)) &&
    attempts === 0 &&
    Object.keys(leftOut).length === 0 &&
    windowAskedMs !== null &&
    windowAskedMs <= nowMs
  );
}

/** Returns the name by which the directory knows the certificate that is there. */
export function nameOf({ chain }: AcmeOrder): string | undefined {
  return chain === null ? undefined : renewalName(new X509Certificate(chain).raw);
}

/** When an order that was placed now is given up: when the directory says, but not later than its challenges end. */
export function expiryOf({ expires }: DirectoryOrder, nowMs: number): string {
  const saidMs = Date.parse(expires ?? "");
  const keptMs = Number.isNaN(saidMs)
    ? silentExpiryMs
    : Math.max(expiryMsMin, Math.min(saidMs - nowMs, openMs));
  return new Date(nowMs + keptMs).toISOString();
}

/** NaN where there is no certificate. */
export const lifeOf = ({ notBefore, notAfter, whenIssued }: LifeTold): Life => ({
  notBeforeMs: Date.parse(notBefore ?? ""),
  notAfterMs: Date.parse(notAfter ?? ""),
  issuedMs: Date.parse(whenIssued ?? notBefore ?? ""),
});
type LifeTold = Readonly<Record<"notBefore" | "notAfter" | "whenIssued", string | null>>;

export const msOfWindow = ({ start, end }: { readonly start: string; readonly end: string }) => ({
  startMs: Date.parse(start),
  endMs: Date.parse(end),
});
