// What a 304 and an answer to HEAD change of a stored response.

import { describe, expect, it } from "vitest";
import type { Field } from "../../src/core/http-fields.ts";
import { planHeadRefresh, planRefresh } from "../../src/core/http-refresh.ts";

const now = Date.UTC(2026, 0, 1, 12);
const today = "Thu, 01 Jan 2026 12:00:00 GMT";
const plain = { noStore: false, isAuthorized: false };
const settings = {
  ttl_s: null,
  ignore_set_cookie: false,
  stale_while_revalidate_s: 0,
  stale_if_error_s: 0,
};
const stored = {
  status: 200,
  size: 3,
  headers: [
    ["Cache-Control", "max-age=60"],
    ["ETag", '"a"'],
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
        ["X-Kept", "1"],
        ["Content-Type", "text/html"],
        ["Date", today],
      ],
      initialAgeS: 5,
      freshForS: 60,
    });
    expect(by304(["Cache-Control", "max-age=7"])).toMatchObject({ freshForS: 7 });
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
      "Content-Type",
      "X-Kept",
      "Date",
    ]);
  });

  it.each<[string, Field]>([
    ["another tag", ["ETag", '"b"']],
    ["another Vary", ["Vary", "Accept"]],
  ])("with %s is about another response", (_name, field) => {
    expect(by304(field)).toEqual({ kind: "other" });
  });

  it.each<[string, Field]>([
    ["private", ["Cache-Control", "private"]],
    ["no-store", ["Cache-Control", "no-store"]],
    ["with a cookie", ["Set-Cookie", "a=b"]],
  ])("%s ends the storing", (_name, field) => {
    expect(by304(field)).toEqual({ kind: "drop" });
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
});
