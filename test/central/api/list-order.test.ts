// Lists that are read from their end, page by page, and lists of the bots of one domain.

import { expect, test } from "vitest";
import { openApi, type Api } from "./api-harness.ts";

/** Follows the links from a first page; returns the ids of each page. */
async function walk(api: Api, token: string, first: string): Promise<readonly number[][]> {
  const pages: number[][] = [];
  for (let path: string | undefined = first; path !== undefined;) {
    const reply = await api.call("GET", path, { token });
    expect(reply.status).toBe(200);
    pages.push((reply.body as readonly { id: number }[]).map(({ id }) => id));
    const link = String(reply.headers["link"] ?? "");
    [, path] = /<(?:\/presentation-api\/v1)?([^>]+)>; rel="next"/.exec(link) ?? [];
  }
  return pages;
}

async function withDomains(api: Api, token: string, ...names: readonly string[]): Promise<void> {
  const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
  expect(site.status).toBe(201);
  for (const name of names) {
    const body = { name, link_to_deployment_sites_with_tags: "all" };
    expect((await api.call("POST", "/domain/", { token, body })).status).toBe(201);
  }
}

test("clears and versions come newest first where that is asked for, each once", async () => {
  await using api = await openApi();
  const token = await api.trial("historian");
  await withDomains(api, token, "www.example.com");
  for (let no = 0; no < 7; no++) {
    const body = { urls: [`/${no}`] };
    await api.call("POST", "/clear-accelerator-cache/www.example.com/?wait=0", { token, body });
    const content = JSON.stringify({ domains: { "www.example.com": {} } });
    const path = `/www.example.com/devlove/version-${no}/`;
    await api.call("POST", path, { token, body: { schema: "devlove/1", content } });
  }
  for (const path of [
    "/clear-accelerator-cache/www.example.com/",
    "/active-viewset/www.example.com/",
  ]) {
    const oldest = (await walk(api, token, `${path}?limit=3`)).flat();
    expect(oldest).toHaveLength(7);
    const pages = await walk(api, token, `${path}?order=newest&limit=3`);
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
    expect(pages.flat()).toEqual(oldest.toReversed());
    // Without a limit it is one answer, as ever.
    expect(await walk(api, token, `${path}?order=newest`)).toEqual([oldest.toReversed()]);
    const refused = await api.call("GET", `${path}?order=best`, { token });
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: "?order" }] } });
  }
});

test("the link to the next page keeps what else was asked", async () => {
  await using api = await openApi();
  const token = await api.trial("historian");
  await withDomains(api, token, "www.example.com");
  for (const _no of [1, 2]) {
    const body = { everything: true };
    await api.call("POST", "/clear-accelerator-cache/www.example.com/?wait=0", { token, body });
  }
  const since = "2000-01-01T00:00:00Z";
  const path = `/clear-accelerator-cache/www.example.com/?since=${since}&limit=1`;
  const { headers } = await api.call("GET", path, { token });
  const [, query = ""] = /\?([^>]+)>/.exec(String(headers["link"])) ?? [];
  expect(Object.fromEntries(new URLSearchParams(query))).toEqual({ since, limit: "1", after: "1" });
});

test("bots are listed for one domain with its sub-domains", async () => {
  await using api = await openApi();
  const token = await api.trial("gardener");
  await withDomains(api, token, "www.example.com", "shop.example.com");
  const sub = { sub_domain: { name: "img.www.example.com" } };
  await api.call("PUT", "/domain/www.example.com/", { token, body: sub });
  for (const host of ["www.example.com", "shop.example.com", "img.www.example.com"]) {
    const body = { attach_to_bot: `Bot of ${host}`, attach_to_domain: host };
    expect((await api.call("POST", "/mark-as-bad-bot/192.0.2.7/", { token, body })).status).toBe(
      200,
    );
  }
  const of = async (query: string): Promise<unknown> =>
    (
      (await api.call("GET", `/list-bad-bots/${query}`, { token })).body as { domain: string }[]
    ).map(({ domain }) => domain);
  expect(await of("?domain=www.example.com")).toEqual(["www.example.com", "img.www.example.com"]);
  expect(await of("?domain=shop.example.com")).toEqual(["shop.example.com"]);
  expect(await of("")).toHaveLength(3);
  const unknown = await api.call("GET", "/list-bad-bots/?domain=none.example.com", { token });
  expect(unknown.status).toBe(404);
});
