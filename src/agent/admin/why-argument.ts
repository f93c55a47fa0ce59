// What `accel-agent why` can be asked about: a URL, an address, a decision.

import { decisionIdPattern } from "../../core/serving/decision.ts";
import { AccelError } from "../../core/faults.ts";
import { parseIp, parseRange } from "../../core/addresses/ip.ts";
import { parseUrlArgument, type UrlArgument } from "./url-argument.ts";

export type WhyArgument =
  | { readonly kind: "url"; readonly url: UrlArgument }
  | { readonly kind: "address"; readonly ip: string }
  | { readonly kind: "decision"; readonly id: string };

/** A host name is none of the others: those have no dot, or only digits. Throws USAGE saying what is wrong. */
export function parseWhyArgument(text: unknown): WhyArgument {
  if (typeof text !== "string" || text === "")
    throw new AccelError(
      "USAGE",
      "why takes a URL (https://www.example.com/page?x=1), an address, or the X-Accel-Decision of an answer",
    );
  if (parseIp(text) !== undefined) return { kind: "address", ip: text };
  if (parseRange(text).ok)
    throw new AccelError("USAGE", `why takes one address, not the range ${JSON.stringify(text)}`);
  const id = text.toLowerCase();
  if (decisionIdPattern.test(id)) return { kind: "decision", id };
  return { kind: "url", url: parseUrlArgument(text) };
}
