// What a 304 and an answer to HEAD change of a stored response.

import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { plainRequest as plain, type StoreRequest } from "../../../src/core/http/http-cache.ts";
import { endsStored, planHeadRefresh, planRefresh } from "../../../src/core/http/http-refresh.ts";
import { CACHE_DEFAULTS } from "../../../src/core/serving/cache-defaults.ts";

const now = Date.UTC(2026, 0, 1, 12);
const today = "Thu, 01 Jan 2026 12:00:00 GMT";
const modified = "Thu, 01 Jan 2026 10:00:00 GMT";
const settings = CACHE_DEFAULTS;
const stored = {
  status: 200,
  size: 3,
  headers: [
    ["Cache-Control", "max-age=60"],
    ["ETag", '"a"'],
    ["Last-Modified", modified],
    ["Content-Type", "text/plain"],
    ["Date", "Thu, 01 Jan 2026 11:00:00 GMT"],
    ["X-Kept", "1"],
  ] as readonly Field[],
};
const facts = (status: number, fields: readonly Field[]) => ({
  status,
  fields,
  requestedAtMs: now,
  receivedAtMs: now,
});
const by304 = (...fields: readonly Field[]) =>
  planRefresh(stored, facts(304, fields), plain, settings);
const byHead = (...fields: readonly Field[]) =>
  planHeadRefresh(stored, facts(200, fields), plain, settings);

describe("a 304", () => {
  it("replaces what it says, keeps the rest, and is as old as it is", () => {
    expect(by304(["etag", 'W/"a"'], ["Content-Type", "text/html"], ["Age", "5"])).toEqual({
      kind: "refresh",
      headers: [
        ["Cache-Control", "max-age=60"],
        ["ETag", '"a"'],
        ["Last-Modified", modified],
        ["X-Kept", "1"],
        ["Content-Type", "text/html"],
        ["Date", today],
      ],
      initialAgeS: 5,
      freshForS: 60,
      isKept: true,
    });
    expect(by304(["Cache-Control", "max-age=7"])).toMatchObject({ freshForS: 7 });
  });

  it("that is private by its own words changes nothing for others, whatever the stored field for caches allows", () => {
    const targeted = {
      ...stored,
      headers: [...stored.headers, ["CDN-Cache-Control", "s-maxage=600"]] as readonly Field[],
    };
    const planned = (...fields: readonly Field[]) =>
      planRefresh(targeted, facts(304, [["ETag", '"a"'], ...fields]), plain, settings).kind;
    expect(planned(["Cache-Control", "no-cache, public, private"])).toBe("drop");
    expect(planned(["Cache-Control", "no-store"])).toBe("drop");
    expect(planned(["Cache-Control", "private"], ["CDN-Cache-Control", "s-maxage=600"])).toBe(
      "refresh",
    );
    expect(planned(["Cache-Control", "no-store, must-understand, max-age=9"])).toBe("refresh");
    expect(planned()).toBe("refresh");
  });

  it("changes nothing that describes the bytes", () => {
    const plan = by304(
      ["Content-Length", "9"],
      ["Content-Encoding", "gzip"],
      ["Content-MD5", "x"],
      ["Content-Range", "bytes 0-1/2"],
    );
    expect(plan.kind === "refresh" && plan.headers.map(([name]) => name)).toEqual([
      "Cache-Control",
      "ETag",
      "Last-Modified",
      "Content-Type",
      "X-Kept",
      "Date",
    ]);
  });

  it.each<[string, Field]>([
    ["another tag", ["ETag", '"b"']],
    ["another date and no tag", ["Last-Modified", "Thu, 01 Jan 2026 10:00:01 GMT"]],
    ["another Vary", ["Vary", "Accept"]],
  ])("with %s is about another response", (_name, field) => {
    expect(by304(field)).toEqual({ kind: "other" });
  });

  it("with the tag is about this one, whatever date it has", () => {
    expect(by304(["ETag", '"a"'], ["Last-Modified", today]).kind).toBe("refresh");
    expect(by304(["Last-Modified", modified]).kind).toBe("refresh");
  });

  it.each<[string, Field]>([
    ["private", ["Cache-Control", "private"]],
    ["no-store", ["Cache-Control", "no-store"]],
  ])("%s ends the storing, whoever asked", (_name, field) => {
    expect(by304(field)).toEqual({ kind: "drop" });
    const request = { ...plain, noStore: true };
    expect(planRefresh(stored, facts(304, [field]), request, settings)).toEqual({ kind: "drop" });
  });

  it.each<[string, Partial<StoreRequest>]>([
    ["wants nothing kept", { noStore: true }],
    ["has credentials", { isAuthorized: true }],
  ])("to who %s confirms and changes nothing", (_name, request) => {
    const plan = planRefresh(stored, facts(304, []), { ...plain, ...request }, settings);
    expect(plan).toMatchObject({ kind: "refresh", freshForS: 60, isKept: false });
  });

  it("that forbids is its visitor's word where he told a cookie, unless it is stored for that", () => {
    const told = { ...plain, hasCookies: true };
    const answer = facts(304, [["Cache-Control", "private"]]);
    expect(planRefresh(stored, answer, told, settings)).toEqual({ kind: "own" });
    const ofCookies = { ...stored, headers: [...stored.headers, ["Vary", "Cookie"]] as const };
    expect(planRefresh(ofCookies, answer, told, settings)).toEqual({ kind: "drop" });
    expect(planRefresh(stored, facts(304, []), told, settings)).toMatchObject({ isKept: true });
  });

  it("with a cookie is its visitor's, unless the rule strips it", () => {
    const answer = facts(304, [["Set-Cookie", "a=b"]]);
    expect(planRefresh(stored, answer, plain, settings)).toEqual({ kind: "own" });
    const stripping = { ...settings, ignore_set_cookie: true };
    expect(planRefresh(stored, answer, plain, stripping).kind).toBe("refresh");
    const varying = { ...stripping, cookies: { ...settings.cookies, vary: ["a"] } };
    expect(planRefresh(stored, answer, plain, varying)).toEqual({ kind: "own" });
  });
});

describe("a full answer that is not stored", () => {
  const lasting: Field = ["Cache-Control", "max-age=60"];
  const cookie: Field = ["Set-Cookie", "a=b"];

  it.each<[number, readonly Field[], boolean]>([
    [200, [["Cache-Control", "private"]], true],
    [200, [["Cache-Control", "no-store"]], true],
    [200, [lasting, ["Vary", "*"]], true],
    [200, [], true],
    [302, [["Location", "/login"]], true],
    [403, [], true],
    [404, [], true],
    [404, [cookie], true],
    [410, [["Cache-Control", "no-store"]], true],
    [200, [lasting, cookie], false],
    [200, [lasting], false],
    [206, [], false],
    [304, [["Cache-Control", "private"]], false],
    [400, [], false],
    [416, [], false],
    [429, [["Cache-Control", "no-store"]], false],
    [500, [["Cache-Control", "no-store"]], false],
    [503, [], false],
  ])("%i with %j ends what is stored: %s", (status, fields, ends) => {
    const answer = facts(status, fields);
    expect(endsStored(stored, answer, plain, settings)).toBe(ends);
    expect(endsStored(stored, answer, { ...plain, noStore: true }, settings)).toBe(ends);
    expect(endsStored(stored, answer, { ...plain, isAuthorized: true }, settings)).toBe(false);
    const told = { ...plain, hasCookies: true };
    expect(endsStored(stored, answer, told, settings)).toBe(false);
    const ofCookies = { ...stored, headers: [...stored.headers, ["vary", "Cookie"]] as const };
    expect(endsStored(ofCookies, answer, told, settings)).toBe(ends);
  });

  it("does not where the site's rule would have it stored", () => {
    expect(endsStored(stored, facts(200, []), plain, { ...settings, ttl_s: 60 })).toBe(false);
  });
});

describe("an answer to HEAD", () => {
  it.each<[string, readonly Field[], string | undefined]>([
    ["with the tag refreshes", [["ETag", '"a"']], "refresh"],
    [
      "with tag and length refreshes",
      [
        ["ETag", '"a"'],
        ["Content-Length", "3"],
      ],
      "refresh",
    ],
    [
      "with another length is about another",
      [
        ["ETag", '"a"'],
        ["Content-Length", "4"],
      ],
      "other",
    ],
    ["with another tag is about another", [["ETag", '"b"']], "other"],
    ["without validator says nothing", [["Content-Length", "3"]], undefined],
  ])("%s", (_name, fields, kind) => {
    expect(byHead(...fields)?.kind).toBe(kind);
  });

  it("to a cookie says nothing of what is stored for all when it is another", () => {
    const told = { ...plain, hasCookies: true };
    const other = facts(200, [["ETag", '"b"']]);
    expect(planHeadRefresh(stored, other, told, settings)?.kind).toBe("own");
  });
});
