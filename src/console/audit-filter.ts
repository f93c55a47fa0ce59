// The filter of the audit page, as it stands in the address, and the line of a change in words. Pure.

import type { AuditedChange } from "../wire/customer/audit.ts";
import { withQuery } from "./api.ts";

export const auditFields = ["since", "until", "username", "operation"] as const;
export type AuditFilter = Readonly<Partial<Record<(typeof auditFields)[number], string>>>;

export function auditFilterOf(query: URLSearchParams): AuditFilter {
  return Object.fromEntries(
    auditFields.flatMap((name) => {
      const value = query.get(name);
      return value === null || value === "" ? [] : [[name, value]];
    }),
  );
}

/** Times stand in the address as the reader wrote them, and are the reader's own. Central is told the moment. */
export function auditPath({ since, until, ...rest }: AuditFilter, limit: number): string {
  return withQuery("/audit/", { ...rest, since: momentOf(since), until: momentOf(until), limit });
}

/** Whatever is no time goes to central as it is, which says what is wrong. */
function momentOf(text: string | undefined): string | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? text : new Date(ms).toISOString();
}

const viaWords: Readonly<Record<AuditedChange["via"], string>> = {
  api: "a user of the API",
  operator: "the operator",
  agent: "a host",
  central: "central",
};

/** Says who did it. */
export function doerWords({ via, username }: Pick<AuditedChange, "via" | "username">): string {
  return username ?? viaWords[via] ?? via;
}

const shownMost = 4;

/** Returns the ids that say what it was about, without those that say by whom. */
export function aboutWords({ detail }: Pick<AuditedChange, "detail">): string {
  const ids = Object.entries(detail.ids).filter(([name]) => !name.startsWith("by_"));
  return ids
    .slice(0, shownMost)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${plain(value)}`)
    .join(", ");
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
