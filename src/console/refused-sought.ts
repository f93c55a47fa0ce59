// What somebody seeks who asks why a visitor was refused: by an address, by the id of a request, or by what the visitor was sent. Pure.

import { decisionIdPattern } from "../core/serving/decision.ts";

export type RefusedSought =
  /** What the logs are filtered by. */
  | { readonly kind: "logs"; readonly query: Readonly<Record<string, string>> }
  /** The id of a decision, which records do not have. */
  | { readonly kind: "decision"; readonly id: string };

/** `text` is not empty. */
export function refusedSought(text: string): RefusedSought {
  // The whole line of the answer may have been copied.
  const sought = text.trim().replace(/^x-accel-decision:\s*/i, "");
  const id = sought.toLowerCase();
  if (decisionIdPattern.test(id)) return { kind: "decision", id };
  const isAddress = /^[\d./]+$|:/.test(sought);
  return {
    kind: "logs",
    query: isAddress ? { address: sought, verdict: "refused" } : { id: sought },
  };
}
