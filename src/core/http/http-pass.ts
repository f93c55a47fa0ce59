// Which requests the cache takes no part in: they are passed on, their answers are not stored, and no stored
// response answers them.

import { fieldValue, type Field } from "./http-fields.ts";
import type { CacheRoute } from "../serving/cache-route.ts";
import { variesByRule } from "./request-cookies.ts";

export type PassReason = "method" | "paused" | "bypass" | "bypass_cookie" | "cookie" | "request";

/** The words for each reason in Cache-Status (RFC 9211 §2.2, §2.8). */
export const passSaid: Readonly<Record<PassReason, string>> = {
  method: "fwd=method",
  paused: "fwd=bypass; detail=paused",
  bypass: "fwd=bypass",
  bypass_cookie: "fwd=bypass; detail=cookie",
  cookie: "fwd=bypass; detail=cookie",
  request: "fwd=request",
};

export type PassRequest = {
  readonly method: string;
  readonly fields: readonly Field[];
  readonly hasBody: boolean;
  /**
   * Whether the target ends in a lone `?`. Not every origin takes `/a?` for `/a`, yet it has no key of its
   * own that whoever clears `/a` would know of.
   */
  readonly hasLoneMark: boolean;
};

/** Preconditions of writers are for the origin. */
const forOrigin = ["if-match", "if-unmodified-since"];

/**
 * Returns why a request is passed on, or undefined if the cache is asked. A rule's `ttl_s` makes an answer
 * public without the origin's word, so it may only hold for requests that tell nothing about their visitor but
 * what the rule varies by. A rule that varies by some cookies says that the answer depends on these alone,
 * which holds for no request with others. Where the origin's own headers decide, they decide about requests
 * with cookies too (RFC 9111 §3).
 *
 * While the site's cache is paused, everything is passed on.
 */
export function passReason(
  { method, fields, hasBody, hasLoneMark }: PassRequest,
  { settings, cookies }: Pick<CacheRoute, "settings" | "cookies">,
  isPaused = false,
): PassReason | undefined {
  if (method !== "GET" && method !== "HEAD") return "method";
  if (isPaused) return "paused";
  if (settings.bypass) return "bypass";
  const isForNobody = settings.ttl_s !== null || variesByRule(settings.cookies);
  if (isForNobody || settings.cookies.bypass.length > 0) {
    const { kind } = cookies(fields);
    if (kind === "bypass") return "bypass_cookie";
    if (kind === "own" && isForNobody) return "cookie";
  }
  // A body of a GET is not part of the key.
  return hasBody || hasLoneMark || forOrigin.some((name) => fieldValue(fields, name) !== undefined)
    ? "request"
    : undefined;
}
