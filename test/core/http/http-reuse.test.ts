// Whether a stored response answers a request: by its age, what the visitor asks for, what the origin allows, and what is known of clears.

import { describe, expect, it } from "vitest";
import { requestDirectives } from "../../../src/core/http/cache-control.ts";
import {
  decideReuse,
  isOriginError,
  type Candidate,
  type ReuseContext,
} from "../../../src/core/http/http-reuse.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";

const now = Date.UTC(2026, 0, 1);

function stored(ageS: number, cacheControl = "max-age=60", more: readonly Field[] = []): Candidate {
  return {
    status: 200,
    headers: [["Cache-Control", cacheControl], ...more],
    storedAtMs: now - ageS * 1_000,
    initialAgeS: 0,
    freshForS: 60,
  };
}

function decide(
  candidate: Candidate | undefined,
  request: string | readonly Field[] = [],
  context: Partial<ReuseContext> = {},
): string {
  const fields: readonly Field[] =
    typeof request === "string" ? [["Cache-Control", request]] : request;
  const reuse = decideReuse(candidate, {
    request: requestDirectives(fields),
    settings: { stale_while_revalidate_s: 0, stale_if_error_s: 0 },
    missing: "uri-miss",
    confirmed: true,
    nowMs: now,
    ...context,
  });
  if (reuse.kind === "serve-stale") return reuse.refreshes ? "stale and refresh" : "stale";
  if (reuse.kind !== "fetch") return reuse.kind;
  const conditions = reuse.conditions.map(([name]) => name).join();
  const parts = ["fetch", reuse.fwd, conditions, reuse.standsIn ? "or stale" : ""];
  return parts.filter(Boolean).join(" ");
}

describe("a stored response", () => {
  it.each<[string, Candidate | undefined, string | readonly Field[], string]>([
    ["fresh", stored(59), [], "serve"],
    ["stale", stored(60), [], "fetch stale"],
    ["none", undefined, [], "fetch uri-miss"],
    ["none, and nothing else wanted", undefined, "only-if-cached", "refuse"],
    ["fresh, and nothing else wanted", stored(1), "only-if-cached", "serve"],
    ["stale, and nothing else wanted", stored(61), "only-if-cached", "refuse"],
    ["fresh, no-cache", stored(1), "no-cache", "fetch request"],
    ["fresh, Pragma", stored(1), [["Pragma", "no-cache"]], "fetch request"],
    [
      "fresh, Pragma beside Cache-Control",
      stored(1),
      [
        ["Pragma", "no-cache"],
        ["Cache-Control", "x"],
      ],
      "serve",
    ],
    ["fresh, max-age=0", stored(1), "max-age=0", "fetch request or stale"],
    ["fresh, max-age over its age", stored(1), "max-age=1", "serve"],
    ["fresh, min-fresh", stored(50), "min-fresh=10", "serve"],
    ["fresh, min-fresh beyond", stored(51), "min-fresh=10", "fetch request or stale"],
    ["fresh, no-store", stored(1), "no-store", "serve"],
    ["stale, max-stale", stored(69), "max-stale=10", "stale"],
    ["stale, max-stale beyond", stored(70), "max-stale=10", "fetch stale"],
    ["stale, any max-stale", stored(9_999), "max-stale", "stale"],
    ["stale, max-stale, forbidden", stored(61, "must-revalidate"), "max-stale", "fetch stale"],
    ["stale, max-stale beside min-fresh=0", stored(61), "max-stale, min-fresh=0", "fetch stale"],
  ])("%s", (_name, candidate, request, expected) => {
    expect(decide(candidate, request)).toBe(expected);
  });

  it("is asked about by its validators", () => {
    const date = "Thu, 01 Jan 2026 00:00:00 GMT";
    const tagged = stored(61, "max-age=60", [
      ["ETag", '"a"'],
      ["Last-Modified", date],
    ]);
    expect(decide(tagged)).toBe("fetch stale If-None-Match,If-Modified-Since");
    expect(decide({ ...tagged, status: 404 })).toBe("fetch stale");
  });

  it("is used stale while it is refreshed, within its time", () => {
    const by = "max-age=60, stale-while-revalidate=10";
    expect(decide(stored(69, by))).toBe("stale and refresh");
    expect(decide(stored(70, by))).toBe("fetch stale");
    expect(decide(stored(69, by), "only-if-cached")).toBe("stale");
    expect(decide(stored(69, by), "max-age=60")).toBe("fetch stale");
    expect(decide(stored(69, `${by}, proxy-revalidate`))).toBe("fetch stale");
  });

  it("is stale from the start where it has no lifetime", () => {
    const tagged = { ...stored(0, "public", [["ETag", '"a"']]), freshForS: 0 };
    expect(decide(tagged)).toBe("fetch stale If-None-Match");
    const settings = { stale_while_revalidate_s: 30, stale_if_error_s: 0 };
    expect(decide(tagged, [], { settings })).toBe("stale and refresh");
  });

  it("stands in for an error, within its time", () => {
    const by = "max-age=60, stale-if-error=10";
    expect(decide(stored(69, by))).toBe("fetch stale or stale");
    expect(decide(stored(70, by))).toBe("fetch stale");
    expect(decide(stored(69), "stale-if-error=10")).toBe("fetch stale or stale");
    expect(decide(stored(69, `${by}, must-revalidate`))).toBe("fetch stale");
    expect(decide(stored(69, by), "no-cache")).toBe("fetch stale");
    expect(decide({ ...stored(69, by), status: 503 })).toBe("fetch stale");
  });

  it("stands in for an error as long as it is fresh, whatever is said of stale ones", () => {
    for (const said of ["must-revalidate", "proxy-revalidate", "s-maxage=60"]) {
      expect(decide(stored(1, said), "max-age=0")).toBe("fetch request or stale");
      expect(decide(stored(60, said), "max-age=0")).toBe("fetch stale");
      expect(decide(stored(1, said), "no-cache")).toBe("fetch request");
      expect(decide(stored(1, said), "max-age=0", { confirmed: false })).toBe("fetch stale");
    }
  });

  it("is only confirmed, never stale, while clears may be unknown", () => {
    const by = "max-age=60, stale-while-revalidate=10, stale-if-error=10";
    const unconfirmed = { confirmed: false };
    expect(decide(stored(1, by, [["ETag", '"a"']]), [], unconfirmed)).toBe(
      "fetch stale If-None-Match",
    );
    expect(decide(stored(61, by), "max-stale", unconfirmed)).toBe("fetch stale");
    expect(decide(stored(1), "only-if-cached", unconfirmed)).toBe("refuse");
  });

  it("of the future is no use", () => {
    const by = "max-age=60, stale-while-revalidate=999";
    expect(decide(stored(-5, by), "max-stale")).toBe("fetch stale");
  });
});

// RFC 5861 §4.
it("what counts as an error of the origin are 500, 502, 503 and 504, and nothing else", () => {
  const statuses = Array.from({ length: 500 }, (_, i) => i + 100);
  expect(statuses.filter(isOriginError)).toEqual([500, 502, 503, 504]);
});
