// The audit trail: what a line of it says, and how lines are asked for.

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

/** `at`: ISO 8601. */
export type AuditLine = AuditEntry & { readonly id: number; readonly at: string };

export type AuditQuery = {
  readonly customerId: number | undefined;
  /** A user's name, also of one who had it when the line was written, or an operator's account. */
  readonly who: string | undefined;
  /** ISO 8601, included. */
  readonly since: string | undefined;
};

/** Ids above `after`, up to `upTo`. */
export type AuditStretch = { readonly after: number; readonly upTo: number };
