// A URL as an operator types it. It is read as a request for it would be: nothing is normalized that a
// visitor's client may send unchanged.

import { AccelError } from "../../core/faults.ts";
import { hostOfAuthority, parseDomainName } from "../../core/ids.ts";
import { decisionIdPattern } from "../../core/serving/decision.ts";
import { isHostItself, parseIp, parseRange } from "../../core/addresses/ip.ts";
import type { Scheme } from "../../core/http/client-address.ts";
import { parseTarget, type RequestTarget } from "../../core/http/request-path.ts";

export type UrlArgument = Omit<RequestTarget, "authority"> & {
  /** The host in canonical form. */
  readonly host: string;
  /** The scheme; undefined if none was given. */
  readonly scheme: Scheme | undefined;
};

/**
 * Parses a URL with or without its scheme. One that names the machine by address or as localhost is of the default domain, where there
 * is one, as the request itself would be. Throws USAGE saying what is wrong.
 */
export function parseUrlArgument(text: string, defaultDomain: string | null = null): UrlArgument {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) && !/^https?:/i.test(text))
    throw new AccelError("USAGE", `${JSON.stringify(text)} is no http or https URL`);
  const said = /^https?(?=:\/\/)/i.exec(text)?.[0].toLowerCase();
  const whole = (said === undefined ? `http://${text}` : text).replace(/#.*$/s, "");
  const target = parseTarget(whole);
  const named = hostOfAuthority(target?.authority ?? "") ?? "";
  const isMachine = named !== "" && isHostItself(named);
  const isOfDefault = defaultDomain !== null && isMachine;
  const host = parseDomainName(isOfDefault ? defaultDomain : named);
  if (target === undefined || host === undefined)
    throw new AccelError(
      "USAGE",
      isMachine
        ? `${JSON.stringify(text)} names no site: there is no accelerator.default_domain; name the site's host instead`
        : `${JSON.stringify(text)} names no host`,
    );
  const { rawPath, rawQuery, hasLoneMark } = target;
  const scheme = said === "http" || said === "https" ? said : undefined;
  return {
    host,
    scheme,
    rawPath: sendable(rawPath),
    rawQuery: sendable(rawQuery),
    hasLoneMark,
  };
}

/** Encodes with percent signs what no request line can hold, as every client does. */
function sendable(text: string): string {
  return text.toWellFormed().replaceAll(/[^\x21-\x7e]+/gu, encodeURIComponent);
}

// What `accel-agent why` can be asked about: a URL, an address, a decision.

type WhyArgument =
  | { readonly kind: "url"; readonly url: UrlArgument }
  | { readonly kind: "address"; readonly ip: string }
  | { readonly kind: "decision"; readonly id: string };

/**
 * Tells the three apart: an address parses as one, a decision matches the pattern of ids, and anything else
 * is a URL. Throws USAGE saying what is wrong.
 */
export function parseWhyArgument(text: unknown, defaultDomain: string | null): WhyArgument {
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
  return { kind: "url", url: parseUrlArgument(text, defaultDomain) };
}
