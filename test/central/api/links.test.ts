// Sites and domains: links by id and by the standing rule of tags, and what the journal of each site tells of them.

import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

let api: Api;
let token: string;
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`linker${++no}`);
});

async function site(tags: string): Promise<number> {
  const reply = await api.call("POST", "/deployment-site/", { token, body: { tags } });
  return Number(member(reply.body, "id"));
}

async function domain(body: object): Promise<Reply> {
  return api.call("POST", "/domain/", { token, body });
}

async function linked(name: string): Promise<readonly number[]> {
  const { body } = await api.call("GET", `/domain/${name}/`, { token });
  const sites: unknown = Object(body)["deployment_sites"];
  return Array.isArray(sites) ? sites.map((one) => Number(member(one, "id"))) : [];
}

async function lastDomains(siteId: number): Promise<readonly string[]> {
  const entries = await api.journal(siteId);
  const last = entries.findLast(({ kind }) => kind === "domains.changed")?.body;
  const list: unknown = Object(last)["domains"];
  return Array.isArray(list) ? list.map((one) => member(one, "name")) : [];
}

describe("deployment site", () => {
  test("has a name, a secret that is sealed at rest, and its tags as given", async () => {
    const body = { tags: " eu , edge,eu,, Fast" };
    const made = await api.call("POST", "/deployment-site/", { token, body });
    expect(made.body).toMatchObject({
      name16: expect.stringMatching(/^[0-9a-f]{16}$/),
      secret16: expect.stringMatching(/^[0-9a-f]{32}$/),
      deployment_tags: "eu,edge,Fast",
    });
    const read = await api.call("GET", `/deployment-site/${member(made.body, "id")}/`, { token });
    expect(read.body).toEqual(made.body);
    const row = await api.store.selectFrom("deployment_sites").selectAll().execute();
    expect(JSON.stringify(row)).not.toContain(member(made.body, "secret16"));
  });

  test("gets a new secret; without grace the old one is revoked and the channel closed", async () => {
    const id = await site("");
    const path = `/deployment-site/${id}/`;
    const before = member((await api.call("GET", path, { token })).body, "secret16");
    const after = await api.call("POST", `${path}rotate-secret/`, { token });
    expect(member(after.body, "secret16")).not.toBe(before);
    const old = async () =>
      api.store
        .selectFrom("old_secrets")
        .select("until")
        .where("deployment_site_id", "=", id)
        .execute();
    expect(await old()).toEqual([
      { until: new Date(api.clock.getTime() + 86_400_000).toISOString() },
    ]);
    expect(api.closed).not.toContain(id);
    await api.call("POST", `${path}rotate-secret/`, { token, body: { grace_seconds: 0 } });
    expect(await old()).toEqual([]);
    expect(api.closed).toContain(id);
  });

  test("that is deleted is told that it serves nothing, and is gone", async () => {
    const id = await site("");
    await domain({ name: "gone.example.com", deployment_site_id: id });
    const before = (await api.journal(id)).length;
    expect((await api.call("DELETE", `/deployment-site/${id}/`, { token })).status).toBe(204);
    expect(await api.journal(id, before)).toEqual([
      { kind: "domains.changed", body: { domains: [] } },
    ]);
    expect(await linked("gone.example.com")).toEqual([]);
    expect((await api.call("GET", `/deployment-site/${id}/`, { token })).status).toBe(404);
  });
});

describe("domain", () => {
  test.each([
    [
      { name: "x.example.com", link_to_deployment_sites_with_tags: "a", deployment_site_id: 1 },
      400,
    ],
    [{ name: "x.example.com", link_to_deployment_sites_with_tags: "a", deployment_id: 1 }, 400],
    [{ name: "x.example.com", deployment_site_id: 1, deployment_id: 2 }, 400],
    [{ name: "x.example.com", deployment_site_id: 999_999 }, 404],
    [{ name: "x" }, 400],
    [{ name: "192.0.2.1" }, 400],
    [{ name: "x/y.example.com" }, 400],
    [{}, 400],
    [{ name: "x.example.com", link_to_deployment_sites_with_tags: "matches,nothing" }, 201],
    [{ name: "BÜCHER.Example.COM" }, 201],
  ])("create %j: %i", async (body, status) => {
    const reply = await domain(body);
    expect(reply.status).toBe(status);
    if (status === 201) expect(reply.body).toMatchObject({ sub_domains: [], deployment_sites: [] });
  });

  test("names are canonical and unique across main and sub-domains of the customer", async () => {
    expect(member((await domain({ name: "BÜCHER.example.com" })).body, "name")).toBe(
      "xn--bcher-kva.example.com",
    );
    expect((await domain({ name: "bücher.EXAMPLE.com" })).status).toBe(409);
    await domain({ name: "shop.example.org" });
    const sub = (name: string) =>
      api.call("PUT", "/domain/shop.example.org/", { token, body: { sub_domain: { name } } });
    expect((await sub("img.shop.example.org")).status).toBe(200);
    expect((await domain({ name: "img.shop.example.org" })).status).toBe(409);
    expect((await sub("img.elsewhere.org")).status).toBe(400);
    await domain({ name: "api.shop.example.org" });
    expect((await sub("api.shop.example.org")).status).toBe(409);
  });

  test("both names of the id link; sub-domains are added and changed; each change is told", async () => {
    const id = await site("");
    const made = await domain({ name: "www.example.net", deployment_id: id });
    expect(made.body).toMatchObject({ deployment_sites: [{ id }] });
    const put = async (share: unknown) =>
      api.call("PUT", "/domain/www.example.net/", {
        token,
        body: {
          ...Object(made.body),
          sub_domain: {
            name: "Static.WWW.example.net",
            share_views_and_views_dir_with_main_domain: share,
          },
        },
      });
    await put("True");
    const reply = await put(false);
    const subDomain = {
      name: "static.www.example.net",
      share_views_and_views_dir_with_main_domain: false,
    };
    expect(reply.body).toMatchObject({ sub_domains: [subDomain] });
    const entries = await api.journal(id);
    expect(entries.map(({ kind }) => kind)).toEqual([
      "key.changed", // Its first one.
      "domains.changed",
      "policy.changed",
      "domains.changed",
      "domains.changed",
    ]);
    expect(entries.at(-1)?.body).toEqual({
      domains: [{ name: "www.example.net", sub_domains: [subDomain] }],
    });
    expect(api.woken.at(-1)).toEqual([id]);
  });

  test("a link by id is taken back by id; one by tags only by tags", async () => {
    const id = await site("blue");
    await domain({ name: "a.example.com", deployment_site_id: id });
    const unlink = async (name: string, of = id) =>
      (await api.call("DELETE", `/domain/${name}/deployment-sites/${of}/`, { token })).status;
    expect(await unlink("a.example.com")).toBe(204);
    expect(await lastDomains(id)).toEqual([]);
    expect(await unlink("a.example.com")).toBe(404);
    await domain({ name: "b.example.com", link_to_deployment_sites_with_tags: "blue" });
    expect(await unlink("b.example.com")).toBe(409);
    await api.call("PUT", "/domain/b.example.com/", { token, body: { deployment_site_id: id } });
    expect(await unlink("b.example.com")).toBe(204);
    expect(await linked("b.example.com")).toEqual([id]); // Its tags still match.
    await api.call("PUT", `/deployment-site/${id}/`, { token, body: { tags: "red" } });
    expect(await linked("b.example.com")).toEqual([]);
  });

  test("deleting one unlinks it and takes its marks and policies along", async () => {
    const id = await site("");
    const name = "d.example.com";
    await domain({ name, deployment_site_id: id });
    const mark = { attach_to_bot: "B", attach_to_domain: name };
    await api.call("POST", "/mark-as-bad-bot/192.0.2.1/", { token, body: mark });
    const allow_access = [{ domain: name, bot: "B" }];
    await api.call("POST", "/bot-access-policy/", { token, body: { allow_access } });
    expect((await api.call("DELETE", `/domain/${name}/`, { token })).status).toBe(204);
    expect((await api.journal(id)).slice(-2)).toEqual([
      { kind: "domains.changed", body: { domains: [] } },
      { kind: "policy.changed", body: { domains: [] } },
    ]);
    expect((await api.call("GET", "/list-bad-bots/", { token })).body).toEqual([]);
    const policy = await api.call("GET", "/bot-access-policy/", { token });
    expect(policy.body).toMatchObject({ allow_access: [] });
  });

  test("a site that is newly linked is told all that belongs to the domain", async () => {
    const name = "full.example.com";
    await domain({ name });
    const content = JSON.stringify({ domains: { [name]: {} } });
    const body = { schema: "devlove/1", content };
    await api.call("POST", `/${name}/devlove/one/`, { token, body });
    const [version] = Object((await api.call("GET", `/active-viewset/${name}/`, { token })).body);
    await api.call("PUT", `/active-viewset/${name}/${member(version, "id")}/`, { token });
    const mark = { attach_to_bot: "B", attach_to_domain: name };
    await api.call("POST", "/mark-as-bad-bot/192.0.2.1/", { token, body: mark });
    await api.call("POST", "/mark-as-bad-bot/192.0.2.0_24/", { token, body: mark });
    const id = await site("");
    await api.call("PUT", `/domain/${name}/`, { token, body: { deployment_site_id: id } });
    expect(await api.journal(id)).toMatchObject([
      { kind: "key.changed", body: { keys: [{ version: 1 }] } },
      { kind: "domains.changed", body: { domains: [{ name }] } },
      { kind: "viewset.activated", body: { domain: name, viewset_name: "one" } },
      {
        kind: "bots.changed",
        body: {
          domain: name,
          set: "bad",
          from_version: 0,
          to_version: 2,
          count: 2,
          added: [
            { bot: "B", range: "192.0.2.0/24" },
            { bot: "B", range: "192.0.2.1" },
          ],
          removed: [],
        },
      },
      { kind: "policy.changed", body: { domains: [{ domain: name }] } },
    ]);
  });
});

test("links are what the rules say, whatever happened before, and every site was told", async () => {
  const tags = ["a", "b", "c"] as const;
  const someTags = fc.subarray([...tags]);
  const step = fc.oneof(
    fc.record({ act: fc.constant("site" as const), tags: someTags }),
    fc.record({ act: fc.constant("domain" as const), tags: someTags }),
    fc.record({ act: fc.constant("retag" as const), tags: someTags, which: fc.nat(3) }),
    fc.record({ act: fc.constant("drop" as const), tags: someTags, which: fc.nat(3) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      api.clock = new Date(api.clock.getTime() + 3_600_000);
      token = await api.trial(`model${++no}`);
      const sites = new Map<number, readonly string[]>();
      const rules = new Map<string, readonly string[]>();
      for (const [at, { act, tags: given, ...rest }] of steps.entries()) {
        const which = "which" in rest ? [...sites.keys()][rest.which] : undefined;
        if (act === "site") sites.set(await site(given.join(",")), given);
        else if (act === "domain") {
          const name = `d${at}.example.com`;
          await domain({ name, link_to_deployment_sites_with_tags: given.join(", ") });
          rules.set(name, given);
        } else if (which !== undefined && act === "retag") {
          const body = { tags: given.join(",") };
          await api.call("PUT", `/deployment-site/${which}/`, { token, body });
          sites.set(which, given);
        } else if (which !== undefined) {
          await api.call("DELETE", `/deployment-site/${which}/`, { token });
          sites.delete(which);
        }
      }
      const matches = (rule: readonly string[], held: readonly string[]): boolean =>
        rule.length > 0 && rule.every((tag) => held.includes(tag));
      for (const [name, rule] of rules) {
        const wanted = [...sites].filter(([, held]) => matches(rule, held)).map(([id]) => id);
        expect(await linked(name)).toEqual(wanted);
      }
      for (const [id, held] of sites) {
        const wanted = [...rules].filter(([, rule]) => matches(rule, held)).map(([name]) => name);
        expect(await lastDomains(id)).toEqual(wanted.toSorted());
      }
    }),
    { numRuns: 25 },
  );
});
