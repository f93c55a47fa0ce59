// Past clears: the oldest first, page by page, each with what was proved of it.

import { afterAll, beforeAll, expect, test } from "vitest";
import { member, openApi, type Api } from "./api-harness.ts";
import { receipt } from "./receipts.ts";

let api: Api;
let token: string;
const sites: number[] = [];
const name = "past.example.com";
const sub = `img.${name}`;
const path = `/clear-accelerator-cache/${name}/`;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("historian");
  for (let n = 0; n < 2; n++) {
    const made = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
    sites.push(Number(member(made.body, "id")));
  }
  const domain = { name, link_to_deployment_sites_with_tags: "all" };
  await api.call("POST", "/domain/", { token, body: domain });
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain: { name: sub } } });
});
afterAll(async () => api[Symbol.asyncDispose]());

async function cleared(body: object, host = name) {
  api.clock = new Date(api.clock.getTime() + 60_000);
  const url = `/clear-accelerator-cache/${host}/?wait=0`;
  const reply = await api.call("POST", url, { token, body });
  return member(reply.body, "clear_id");
}
async function listed(query = "", of = path): Promise<readonly Record<string, unknown>[]> {
  const { status, body } = await api.call("GET", `${of}${query}`, { token });
  expect(status).toBe(200);
  return Array.isArray(body) ? body : [];
}

test("a domain without clears has an empty list", async () => {
  expect(await listed()).toEqual([]);
});

test("each is as it reads by itself, numbered within the domain, in pages", async () => {
  const ids = [
    await cleared({ urls: ["/a"], prefixes: ["/b"] }),
    await cleared({ url_path_patterns: ["path:x"] }),
    await cleared({ everything: true }, sub),
    await cleared({ hosts: [name, sub] }),
  ];
  const [first = 0] = sites;
  const seqs = (await api.journal(first)).flatMap(({ kind }, at) =>
    kind === "cache.clear" ? [at + 1] : [],
  );
  const at = (no: number) => ({ siteId: first, seq: seqs[no] ?? 0 });
  const told = { matched: 3, widened: false, invisible_ms: 2, items: true };
  const gone = { removed: 3, blocked_in_flight: 1, gone_ms: 4, verified: true };
  await receipt(api, { ...at(0), phase: "applied", detail: told });
  await receipt(api, { ...at(0), phase: "gone", detail: gone });
  await receipt(api, { ...at(1), phase: "failed", detail: { reason: "no such domain" } });
  await receipt(api, { ...at(3), phase: "applied", detail: { snapshot: true, cleared: [name] } });
  const all = await listed();
  expect(all.map(({ id, clear_id }) => [id, clear_id])).toEqual(ids.map((id, no) => [no + 1, id]));
  for (const { id: _, when_created: when, ...clear } of all) {
    expect(when).toMatch(/^\d{4}-/);
    const alone = await api.call(
      "GET",
      `/clear-accelerator-cache/${String(clear["domain"])}/${String(clear["clear_id"])}/`,
      { token },
    );
    expect(clear).toEqual(alone.body);
  }
  expect(all[0]).toMatchObject({
    urls: ["/a"],
    prefixes: ["/b"],
    deployments: [
      { deployment_site_id: first, state: "applied", matched: 3, removed: 3, verified: true },
      { state: "pending" },
    ],
  });
  expect(all[1]?.["deployments"]).toMatchObject([{ state: "failed" }, {}]);
  // A snapshot after them proves those that came before it.
  expect(all[2]?.["deployments"]).toMatchObject([{ state: "applied", widened: true }, {}]);
  expect(await listed("?limit=2")).toEqual(all.slice(0, 2));
  expect(await listed("?limit=2&after=2")).toEqual(all.slice(2));
  const since = String(all[2]?.["when_created"]);
  expect(await listed(`?since=${since}`)).toEqual(all.slice(2));
  expect(await listed("", `/clear-accelerator-cache/${sub}/`)).toEqual([all[2]]);
});

test("a long list is whole", async () => {
  for (let no = 0; no < 130; no++) await cleared({ urls: [`/p${no}`] });
  const all = await listed();
  expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 134 }, (_, no) => no + 1));
  expect(await listed("?limit=100&after=30")).toEqual(all.slice(30, 130));
});

test("what is no time, and what belongs to others, is refused", async () => {
  const bad = await api.call("GET", `${path}?since=yesterday`, { token });
  expect(bad).toMatchObject({ status: 400 });
  const other = await api.trial("stranger");
  expect(await api.call("GET", path, { token: other })).toMatchObject({ status: 404 });
});
