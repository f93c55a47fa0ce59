// `accel-agent why` says what is cached of a URL, what went and for which reason, and which clears concerned it.

import { expect, test } from "vitest";
import { parseUrlArgument } from "../../src/agent/admin/url-argument.ts";
import type { ClearSeen } from "../../src/agent/cache/clearing/clear-sql.ts";
import type { WhyAnswer, WhyKey } from "../../src/agent/cache/index/why.ts";
import { why, type WhyParts } from "../../src/agent/why.ts";
import { host, stateOf } from "./accelerator/edge.ts";

const nowMs = Date.parse("2031-01-01T00:10:00.000Z");
const key = { domain: host, host, kind: "generated", path: "/a", query: "b=1" } as const;
const stored = {
  ...key,
  id: 5,
  size: 10,
  form: null,
  baseId: null,
  status: 200,
  headers: [],
  mime: "text/html",
  vary: null,
  storedAtMs: nowMs - 60_000,
  initialAgeS: 20,
  freshForS: 100,
  sourceNo: 3,
  digest: null,
  servable: true,
  softenedS: null,
} as const;

/** Of the page and of the file that the URL may mean. */
async function told(
  page: Partial<WhyKey>,
  file: Partial<WhyKey> = {},
  more: Partial<WhyAnswer> = {},
  path = "/a?b=1",
) {
  const none = { entries: [], departures: [], mime: null, clears: [] };
  const index: WhyParts["index"] = {
    why: async (keys) => ({
      keys: keys.map((asked) => ({
        key: asked,
        ...none,
        ...(asked.kind === "generated" ? page : file),
      })),
      clearNo: 9,
      anew: null,
      ...more,
    }),
    doubt: () => undefined,
  };
  const state = stateOf(1, null);
  const parts = { index, dropsUntil: null, state, blobsDir: "/nonexistent", nowMs };
  return Object(await why(parts, parseUrlArgument(`http://${host}${path}`)));
}

test("an entry's age counts from its source, and it is fresh until its lifetime is over", async () => {
  const { cached } = await told({
    entries: [
      stored,
      { ...stored, id: 6, freshForS: 80 },
      { ...stored, id: 7, freshForS: 0, servable: false, form: "br", vary: { accept: "x" } },
    ],
  });
  expect(cached).toEqual([
    {
      id: 5,
      kind: "generated",
      path: "/a",
      query: "b=1",
      status: 200,
      mime: "text/html",
      coding: null,
      size: 10,
      vary: null,
      of_another_rule: false,
      stored_at: "2031-01-01T00:09:00.000Z",
      fresh_until: "2031-01-01T00:10:20.000Z",
      age_s: 80,
      is_fresh: true,
      source_no: 3,
      servable: true,
      confirmed: true,
      for_cookies: true,
    },
    expect.objectContaining({ fresh_until: "2031-01-01T00:10:00.000Z", is_fresh: false }),
    expect.objectContaining({
      coding: "br",
      vary: { accept: "x" },
      is_fresh: false,
      servable: false,
      confirmed: true,
      for_cookies: false,
    }),
  ]);
});

test("a file is fresh as long as it is the file, and answers requests with cookies", async () => {
  const file = { ...stored, kind: "static", query: "", freshForS: 0 } as const;
  const { cached } = await told({}, { entries: [file] });
  expect(cached).toMatchObject([
    { kind: "static", fresh_until: null, is_fresh: true, for_cookies: true },
  ]);
});

const clear = (clearNo: number, over: Partial<ClearSeen> = {}): ClearSeen => ({
  domain: host,
  host: null,
  clearNo,
  clearId: `c${clearNo}`,
  seq: 0,
  patterns: ["path:a"],
  groups: [],
  widened: false,
  isSoft: false,
  matched: 2,
  atS: nowMs / 1_000 - 100 + clearNo,
  ...over,
});

test("what went is told newest first, with its reason and the clear that took it", async () => {
  const gone = { mime: "text/html", clearNo: null, clear: null };
  const atS = nowMs / 1_000;
  const cleared = { ...gone, reason: "cleared", atS: atS - 30, clearNo: 4 } as const;
  const { departed } = await told(
    {
      departures: [
        { ...gone, reason: "evicted", atS: atS - 10 },
        { ...cleared, clear: clear(4, { seq: 17 }) },
        { ...cleared, atS: atS - 40, clearNo: 2 },
        { ...gone, reason: "invalidated", atS: atS - 60 },
      ],
    },
    {
      departures: [
        { ...gone, reason: "replaced", atS: atS - 20 },
        { ...gone, reason: "lost", atS: atS - 50 },
      ],
    },
  );
  expect(departed).toEqual([
    expect.objectContaining({ kind: "generated", reason: expect.stringMatching(/^evicted/) }),
    expect.objectContaining({ kind: "static", reason: "replaced by a newer response" }),
    {
      at: "2031-01-01T00:09:30.000Z",
      kind: "generated",
      mime: "text/html",
      reason: "cleared",
      clear_no: 4,
      clear: {
        clear_no: 4,
        clear_id: "c4",
        at: "2031-01-01T00:08:24.000Z",
        by: "central, journal entry 17",
        of: host,
        patterns: ["path:a"],
        matched: 2,
      },
    },
    expect.objectContaining({
      reason: "cleared, by a clear that is no longer known",
      clear_no: 2,
    }),
    expect.objectContaining({ reason: "lost: its body was missing or damaged on disk" }),
    expect.objectContaining({ reason: expect.stringMatching(/^invalidated/) }),
  ]);
  for (const one of departed.filter(({ reason }: { reason: string }) => !reason.startsWith("cl"))) {
    expect(one).not.toHaveProperty("clear");
    expect(one).not.toHaveProperty("clear_no");
  }
});

test("each clear is told once, newest first, with those that match any of the keys apart", async () => {
  const rows = [8, 7, 6, 5, 4, 3, 2, 1];
  const { clears, newest_clear_no } = await told(
    { clears: rows.map((no) => ({ ...clear(no), matches: no === 3 })) },
    { clears: rows.map((no) => ({ ...clear(no), matches: no === 5 })), mime: "text/html" },
  );
  const numbers = (list: readonly { clear_no: number }[]): readonly number[] =>
    list.map((one) => one.clear_no);
  expect(numbers(clears.matching)).toEqual([5, 3]);
  // The newest five.
  expect(numbers(clears.not_matching)).toEqual([8, 7, 6, 4, 2]);
  expect([clears.mime_known, newest_clear_no]).toEqual([true, 9]);
});

test.each<readonly [string, Partial<ClearSeen>]>([
  ["central, journal entry 1", { seq: 1 }],
  ["accel-agent cache clear on this host", { clearId: "local-1" }],
  ["the agent: domain or host unlinked, or a snapshot taken over", { clearId: "unlinked-1" }],
  ["the agent itself", {}],
])("a clear is by %s", async (by, over) => {
  const { clears } = await told({ clears: [{ ...clear(1, over), matches: true }] });
  expect(clears.matching).toMatchObject([{ by }]);
  expect(clears.mime_known).toBe(false);
});

test("a clear of everything, everywhere, that was widened says so", async () => {
  const all = clear(1, { domain: null, patterns: null, widened: true });
  const { clears } = await told({ clears: [{ ...all, matches: true }] });
  expect(clears.matching).toMatchObject([
    { of: "all domains", patterns: "everything", widened: true },
  ]);
});

test("before an index that was begun anew nothing is known, and the reason is told", async () => {
  const anew = { reason: "index.db was damaged", atS: nowMs / 1_000 - 600 };
  const { known_since, url } = await told({}, {}, { anew }, "/a");
  expect(known_since).toEqual({ at: "2031-01-01T00:00:00.000Z", because: "index.db was damaged" });
  expect(url).toBe(`http://${host}/a`);
  expect(await told({})).toMatchObject({ known_since: null, url: `http://${host}/a?b=1` });
});

test("a soft clear is told where it made an entry stale, with the time, and of its own kind; files it leaves as they are", async () => {
  const softenedS = nowMs / 1_000 - 30;
  const seen: ClearSeen = {
    clearNo: 4,
    clearId: "c",
    domain: host,
    host: null,
    patterns: ["path:a"],
    groups: [],
    widened: false,
    isSoft: true,
    seq: 7,
    matched: 1,
    atS: softenedS,
  };
  const file = { ...stored, id: 8, kind: "static", path: "a.css", query: "", softenedS } as const;
  const said = await told(
    { entries: [{ ...stored, softenedS }], clears: [{ ...seen, matches: true }] },
    { entries: [file] },
  );
  const [page, css] = said.cached;
  expect(page).toMatchObject({
    fresh_until: "2031-01-01T00:09:30.000Z",
    is_fresh: false,
    softly_cleared_at: "2031-01-01T00:09:30.000Z",
    servable: true,
  });
  expect([css.is_fresh, css.softly_cleared_at]).toEqual([true, undefined]);
  expect(said.clears.matching).toMatchObject([{ clear_no: 4, soft: true }]);
});

test("a variant is as fresh as what it was made of, whose head it has", async () => {
  const headers = [["cache-control", "max-age=1000"]] as const;
  const base = { ...stored, headers, mime: "image/png", freshForS: 1_000 };
  // As it is stored: without a head, and with the times that the base had then.
  const form = { ...base, id: 6, form: "avif", baseId: 5, headers: [], freshForS: 10 } as const;
  const { cached } = await told({ entries: [form, base] });
  const until = "2031-01-01T00:25:20.000Z";
  expect(cached).toMatchObject([
    { id: 6, coding: "avif", is_fresh: true, fresh_until: until },
    { id: 5, coding: null, is_fresh: true, fresh_until: until },
  ]);
  const softened = { ...base, softenedS: nowMs / 1_000 - 5 };
  const stale = await told({ entries: [form, softened] });
  expect(stale.cached).toMatchObject([{ is_fresh: false }, { is_fresh: false }]);
});
