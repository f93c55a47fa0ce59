// The audit trail: what its lines say, and how they are queried.

import type { Json } from "./journal/canonical-json.ts";

export type AuditEntry = {
  readonly via: "api" | "operator";
  /** A user's name, or the account of the host that ran the command. */
  readonly who: string;
  readonly userId: number | null;
  /** The customer whose things were changed. */
  readonly customerId: number | null;
  /** Method and route, or the command. */
  readonly action: string;
  readonly ids: Readonly<Record<string, Json>>;
  /** The change, without secrets. */
  readonly change: Json;
  readonly address: string | null;
  readonly requestId: string | null;
};

/** `at` is ISO 8601. */
export type AuditLine = AuditEntry & { readonly id: number; readonly at: string };

export type AuditQuery = {
  readonly customerId: number | undefined;
  /** A user's name, even one that the user only had when the line was written, or an operator's account. */
  readonly who: string | undefined;
  /** ISO 8601, inclusive. */
  readonly since: string | undefined;
};

/** The lines with ids above `after`, up to and including `upTo`. */
export type AuditStretch = { readonly after: number; readonly upTo: number };
