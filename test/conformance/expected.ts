// What the public tests for HTTP caches (http-cache-tests 0.4.5) say of this cache where it is not "pass", and why. All others pass.
//
// Kinds: `required` and `optimal` are judged; `check` only asks what a cache does, so those are merely listed by their answer.

export type NotPassed = { readonly outcome: "fail" | "blocked"; readonly reason: string };

const heuristic =
  "RFC 9111 §4.2.2 lets a cache guess a lifetime where none is stated; this one never does: what is shown to visitors for how long is the site's word.";
const cookie =
  "RFC 9111 §7.3 lets a cache store Set-Cookie; this one never gives one visitor's cookie to another, unless the site's rule strips it.";
const noAnswer =
  "The tests' origin closes the connection, and the test then asks for a counter that only the origin's own answer has. We answer 502 and nothing stale, as must be (test/agent/accelerator/cached/revalidation.test.ts); what the test would take for a pass no gateway can send.";
const part =
  "The test's Content-Range names other bytes than its body has (4-9/10 over 5 bytes, 0-4/10 for the last 5): a part that contradicts itself must not be stored (RFC 9110 §15.3.7). Parts are passed on and not stored; ranges are cut from stored wholes.";

const fail = (reason: string): NotPassed => ({ outcome: "fail", reason });
const blocked = (reason: string): NotPassed => ({ outcome: "blocked", reason });

export const required: Readonly<Record<string, NotPassed>> = {
  "stale-close-must-revalidate": fail(noAnswer),
  "stale-close-proxy-revalidate": fail(noAnswer),
  "stale-close-no-cache": fail(noAnswer),
  "stale-close-s-maxage=2": fail(noAnswer),
  "headers-store-Set-Cookie": blocked(cookie),
  "304-etag-update-response-Set-Cookie": blocked(cookie),
  "headers-store-Transfer-Encoding": blocked(
    "Its origin sends a transfer coding that is not known, whose end nobody can tell: 502 (RFC 9112 §6.1, §6.3).",
  ),
  "304-etag-update-response-ETag": blocked(
    "Its 304 names another strong ETag than the stored one. RFC 9111 §4.3.4: such a response MUST NOT update it; it is asked for whole.",
  ),
};

export const optimal: Readonly<Record<string, NotPassed>> = {
  "heuristic-200-cached": fail(heuristic),
  "heuristic-203-cached": fail(heuristic),
  "heuristic-204-cached": fail(heuristic),
  "heuristic-404-cached": fail(heuristic),
  "heuristic-405-cached": fail(heuristic),
  "heuristic-410-cached": fail(heuristic),
  "heuristic-414-cached": fail(heuristic),
  "heuristic-501-cached": fail(heuristic),
  "heuristic-599-cached": fail(heuristic),
  "method-POST": fail(
    "A POST invalidates its URL (RFC 9111 §4.4); its own answer was asked for before that, so by the rule of clears it is not stored.",
  ),
  "vary-normalise-lang-select": fail(
    "The languages asked for differ in meaning, and RFC 9111 §4.1 allows only what selects the same; which language another request gets is the origin's choice.",
  ),
  "conditional-lm-fresh-no-lm": fail(
    "It asks If-Modified-Since 50 minutes before the response's Date, with no Last-Modified: RFC 9111 §4.3.2 demands a 304 only where the Date is not later.",
  ),
  "partial-store-partial-reuse-partial": fail(part),
  "partial-store-partial-reuse-partial-byterange": fail(part),
  "partial-store-partial-reuse-partial-absent": fail(part),
  "partial-store-partial-reuse-partial-suffix": fail(part),
  "partial-store-partial-complete": fail(part),
  "other-set-cookie": fail(cookie),
};

/** Checks answered "no" (or not answerable for such an answer). */
export const checksNo: readonly string[] = [
  "ccreq-max-stale-age",
  "ccreq-no-store",
  "conditional-etag-forward",
  "conditional-etag-forward-unquoted",
  "conditional-etag-quoted-respond-unquoted",
  "conditional-etag-strong-generate-unquoted",
  "conditional-etag-strong-respond-obs-text",
  "conditional-etag-unquoted-respond-quoted",
  "conditional-etag-vary-headers-mismatch",
  "freshness-expires-32bit",
  "freshness-expires-far-future",
  "freshness-expires-invalid-1-digit-hour",
  "freshness-expires-invalid-2-digit-year",
  "freshness-expires-invalid-aest",
  "freshness-expires-invalid-date-dashes",
  "freshness-expires-invalid-multiple-lines",
  "freshness-expires-invalid-multiple-spaces",
  "freshness-expires-invalid-no-comma",
  "freshness-expires-invalid-time-periods",
  "freshness-expires-invalid-utc",
  "freshness-expires-wrong-case-month",
  "freshness-expires-wrong-case-tz",
  "freshness-expires-wrong-case-weekday",
  "freshness-max-age-100a",
  "freshness-max-age-a100",
  "freshness-max-age-decimal-five",
  "freshness-max-age-decimal-zero",
  "freshness-max-age-space-before-equals",
  "freshness-max-age-two-fresh-stale-sameline",
  "freshness-max-age-two-fresh-stale-sepline",
  "freshness-max-age-two-stale-fresh-sameline",
  "freshness-max-age-two-stale-fresh-sepline",
  "head-200-freshness-update",
  "head-200-retain",
  "head-200-update",
  "head-410-update",
  "headers-omit-headers-listed-in-Cache-Control-no-cache",
  "headers-omit-headers-listed-in-Cache-Control-no-cache-single",
  "heuristic-delta-10",
  "heuristic-delta-1200",
  "heuristic-delta-1800",
  "heuristic-delta-30",
  "heuristic-delta-300",
  "heuristic-delta-3600",
  "heuristic-delta-43200",
  "heuristic-delta-5",
  "heuristic-delta-60",
  "heuristic-delta-600",
  "heuristic-delta-86400",
  "other-heuristic-content-disposition-attachment",
  "pragma-request-no-cache",
  "pragma-response-no-cache-heuristic",
  "stale-warning-become",
  "stale-warning-stored",
];
