// A URL as an operator types it, read as a request for it would be: nothing is normalized that a visitor's client may send as it is.

import { AccelError } from "../../core/faults.ts";
import { hostOfAuthority, parseDomainName } from "../../core/ids.ts";
import { parseTarget } from "../../core/http/request-path.ts";

export type UrlArgument = {
  /** Canonical. */
  readonly host: string;
  readonly rawPath: string;
  /** Without the question mark. */
  readonly rawQuery: string;
  /** There is a question mark, and nothing behind it. */
  readonly hasLoneMark: boolean;
};

/** With or without scheme. Throws USAGE saying what is wrong. */
export function parseUrlArgument(text: string): UrlArgument {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) && !/^https?:/i.test(text))
    throw new AccelError("USAGE", `${JSON.stringify(text)} is no http or https URL`);
  const whole = (/^https?:\/\//i.test(text) ? text : `http://${text}`).replace(/#.*$/s, "");
  const target = parseTarget(whole);
  const host = parseDomainName(hostOfAuthority(target?.authority ?? ""));
  if (target === undefined || host === undefined)
    throw new AccelError("USAGE", `${JSON.stringify(text)} names no host`);
  const { rawPath, rawQuery } = target;
  const hasLoneMark = rawQuery === "" && whole.includes("?");
  return { host, rawPath: sendable(rawPath), rawQuery: sendable(rawQuery), hasLoneMark };
}

/** What no request line can hold, percent-encoded as every client does. */
function sendable(text: string): string {
  return text.toWellFormed().replaceAll(/[^\x21-\x7e]+/gu, encodeURIComponent);
}
