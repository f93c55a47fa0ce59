// Clears by URLs, prefixes and hosts: one clear with one entry in each journal, all or nothing, and agents of the release before widen it.

import { afterAll, beforeAll, expect, test } from "vitest";
import { everything } from "../../../src/core/patterns/pattern-recipes.ts";
import { entriesTaken } from "../../../src/central/agents/journal-fit.ts";
import { readJournal } from "../../../src/central/store/journal/journal.ts";
import { decodeEntry } from "../../../src/wire/journal.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";
import { receipt } from "./receipts.ts";

let api: Api;
let token: string;
let site: number;
const name = "items.example.com";
const sub = `img.${name}`;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("itemizer");
  const made = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
  site = Number(member(made.body, "id"));
  const domain = { name, link_to_deployment_sites_with_tags: "all" };
  await api.call("POST", "/domain/", { token, body: domain });
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain: { name: sub } } });
});
afterAll(async () => api[Symbol.asyncDispose]());

const clear = (body: object, host = name): Promise<Reply> =>
  api.call("POST", `/clear-accelerator-cache/${host}/?wait=0`, { token, body });
const entries = (after = 0) => readJournal(api.store, site, after, 1_000);
async function lastEntry() {
  const entry = (await entries()).at(-1);
  if (entry === undefined) throw new Error("the journal is empty");
  const { kind, body, extension } = entry;
  return { kind, body, ...(extension !== undefined && { extension }) };
}
const errors = (reply: Reply): unknown => Object(reply.body)["errors"];

test("what was named is told as it was given, and the journal has it as it is cleared", async () => {
  const named = {
    urls: [`https://${sub}:8443/a?b#c`, "/d"],
    prefixes: ["/foo"],
    tags: ["product-42", "caf\u00e9 au lait"],
    hosts: [sub],
  };
  const reply = await clear({ ...named, url_path_patterns: ["path:news"] });
  expect(reply.status).toBe(200);
  expect(reply.body).toMatchObject({ domain: name, patterns: ["path:news"], ...named });
  const clearId = member(reply.body, "clear_id");
  expect(await lastEntry()).toEqual({
    kind: "cache.clear",
    body: { clear_id: clearId, domain: name, host: null, patterns: [everything] },
    extension: {
      patterns: ["path:news"],
      urls: [
        { host: sub, path: "/a?b" },
        { host: null, path: "/d" },
      ],
      prefixes: [{ host: null, path: "/foo" }],
      hosts: [sub],
      tags: named.tags,
    },
  });
  const read = await api.call("GET", `/clear-accelerator-cache/${name}/${clearId}/`, { token });
  expect(read.body).toEqual(reply.body);
});

test("what patterns and a host can say is said so, to all agents", async () => {
  await clear({ hosts: [sub] });
  expect(await lastEntry()).toMatchObject({ body: { host: sub, patterns: [everything] } });
  expect(await lastEntry()).not.toHaveProperty("extension");
  const all = await clear({ everything: "true" });
  expect(all.body).toMatchObject({ everything: true, patterns: [] });
  expect(await lastEntry()).toMatchObject({ body: { host: null, patterns: [everything] } });
  await clear({ everything: true }, sub);
  expect(await lastEntry()).toMatchObject({ body: { host: sub, patterns: [everything] } });
  await clear({ urls: ["/a"] }, sub);
  expect(await lastEntry()).toMatchObject({
    body: { host: sub, patterns: [everything] },
    extension: { urls: [{ host: null, path: "/a" }] },
  });
});

test("one item that is wrong refuses the clear, and each is named with what was meant", async () => {
  const before = (await api.journal(site)).length;
  const reply = await clear({
    urls: ["/fine", "www.other.com/x", "https://other.example.com/"],
    prefixes: ["/css/*"],
    hosts: ["other.example.com"],
    tags: ["news", " news", "x".repeat(1_024), "\u00e9".repeat(513)],
  });
  expect(reply.status).toBe(400);
  expect(errors(reply)).toEqual([
    {
      path: "/urls/1",
      message: expect.stringContaining('"www.other.com/x" has to begin with /'),
      did_you_mean: "https://www.other.com/x",
    },
    { path: "/urls/2", message: expect.stringContaining("is none of this domain") },
    {
      path: "/prefixes/0",
      message: expect.stringContaining("ends with *"),
      did_you_mean: "/css/",
    },
    { path: "/hosts/0", message: expect.stringContaining("is no host of this domain") },
    {
      path: "/tags/1",
      message: expect.stringContaining("has blanks at its ends"),
      did_you_mean: "news",
    },
    { path: "/tags/3", message: expect.stringContaining("is longer than 1024 bytes") },
  ]);
  for (const body of [
    {},
    { everything: false },
    { dry_run: true },
    { urls: [] },
    { urls: [""] },
    { urls: ["/a"], tagz: ["x"] },
  ])
    expect(await clear(body)).toMatchObject({ status: 400 });
  expect(await clear({ urls: [`https://${name}/`] }, sub)).toMatchObject({ status: 400 });
  expect(await clear({ urls: ["/a"] }, "nobody.example.com")).toMatchObject({ status: 404 });
  expect(await api.journal(site)).toHaveLength(before);
});

test("a thousand things may be named in one clear, and no more", async () => {
  const urls = (count: number) =>
    Array.from({ length: count }, (_, no) => `/product/${no}?x=${no}`);
  expect(await clear({ urls: urls(1_000) })).toMatchObject({ status: 200 });
  expect((await lastEntry()).extension?.["urls"]).toHaveLength(1_000);
  const more = await clear({ urls: urls(999), hosts: [sub], prefixes: ["/a"] });
  expect(more.status).toBe(400);
  expect(errors(more)).toMatchObject([{ message: expect.stringContaining("at most 1000") }]);
  expect(await clear({ urls: urls(1_001) })).toMatchObject({ status: 400 });
});

test("agents of the release before obey the body of the same history, which asks for more", async () => {
  await clear({ urls: ["/a"] });
  const head = (await api.journal(site)).length;
  const page = await entries(head - 1);
  const [entry] = page;
  if (entry === undefined) throw new Error("no entry");
  expect(entryOf(decodeEntry(entry))).toMatchObject({ extension: { urls: [{ path: "/a" }] } });
  const [older] = entriesTaken(page, false);
  if (older === undefined) throw new Error("no entry");
  expect(older).toEqual({ ...entry, extension: undefined });
  expect(older).not.toHaveProperty("extension");
  expect(older.chain).toBe(entry.chain);
  expect(entryOf(decodeEntry(older))).toMatchObject({ body: { patterns: [everything] } });
  // An extension of a later release is left out, and the body counts.
  const later = decodeEntry({
    ...entry,
    extension: { urls: [{ host: null, path: "/a" }], by_phase_of_moon: true },
  });
  expect(later).toMatchObject({ ok: true, unread: expect.stringContaining("cannot read") });
  expect(entryOf(later)).not.toHaveProperty("extension");
});

function entryOf(decoded: ReturnType<typeof decodeEntry>) {
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.entry;
}

test("an instance that did not read the items is shown as widened", async () => {
  const asked = await clear({ urls: ["/a"] });
  const seq = (await api.journal(site)).length;
  const path = `/clear-accelerator-cache/${name}/${member(asked.body, "clear_id")}/`;
  const told = { matched: 40, widened: false, invisible_ms: 3 };
  await receipt(api, { siteId: site, seq, phase: "applied", detail: told });
  const state = async () => Object((await api.call("GET", path, { token })).body).deployments[0];
  expect(await state()).toMatchObject({ state: "applied", matched: 40, widened: true });
});

test("a soft clear says so in the journal, whatever it names, and agents of the release before clear instead", async () => {
  const reply = await clear({ url_path_patterns: ["path:news"], soft: true });
  expect(reply.body).toMatchObject({ patterns: ["path:news"], soft: true });
  expect(await lastEntry()).toMatchObject({
    body: { host: null, patterns: ["path:news"] },
    extension: { patterns: ["path:news"], soft: true },
  });
  await clear({ everything: true, soft: "true" }, sub);
  expect(await lastEntry()).toMatchObject({
    body: { host: sub, patterns: [everything] },
    extension: { patterns: [everything], soft: true },
  });
  const tagged = await clear({ tags: ["a"], soft: true });
  expect(await lastEntry()).toMatchObject({
    body: { patterns: [everything] },
    extension: { tags: ["a"], soft: true },
  });
  const [before] = entriesTaken((await entries()).slice(-1), false);
  expect(before?.extension).toBeUndefined();
  const hard = await clear({ tags: ["a"], soft: false });
  expect(hard.body).not.toHaveProperty("soft");
  expect((await lastEntry()).extension).toEqual({ tags: ["a"] });
  expect(errors(await clear({ soft: true }))).toEqual([
    expect.objectContaining({ message: expect.stringContaining("names nothing to clear") }),
  ]);
  const path = `/clear-accelerator-cache/${name}/${member(tagged.body, "clear_id")}/`;
  const read = await api.call("GET", path, { token });
  expect(read.body).toMatchObject({ tags: ["a"], soft: true });
});
