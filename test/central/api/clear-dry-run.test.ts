// A dry run of a clear: asked of the connected agents, told by instance, journaled nowhere.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";
import { seen } from "./receipts.ts";

let api: Api;
let token: string;
let name: string;
let sites: readonly number[];
let no = 0;
beforeAll(async () => {
  api = await openApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`clearer${++no}`);
  name = `c${no}.example.com`;
  const made: number[] = [];
  for (let n = 0; n < 2; n++) {
    const site = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
    made.push(Number(member(site.body, "id")));
  }
  sites = made;
  const body = { name, link_to_deployment_sites_with_tags: "all" };
  await api.call("POST", "/domain/", { token, body });
  const sub_domain = { name: `img.${name}` };
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain } });
});

function deployments(reply: Reply): readonly unknown[] {
  const list: unknown = Object(reply.body)["deployments"];
  return Array.isArray(list) ? list : [];
}

/** How long the journal of each site is. */
async function heads(): Promise<readonly number[]> {
  return Promise.all(sites.map(async (id) => (await api.journal(id)).length));
}

describe("a dry run", () => {
  const sample = {
    kind: "generated" as const,
    path: "/news/1",
    query: "",
    mime: "text/html",
    size: 10,
    stored_at: "2031-05-06T07:08:09.000Z",
    pattern: "url:z2fnewsz2f1",
  };

  test("asks the agents, counts and samples, and journals nothing", async () => {
    const [first = 0, second = 0] = sites;
    await seen(api, second, "far-away");
    api.dryRuns.set(first, [{ instanceId: "one", result: { matched: 7, samples: [sample] } }]);
    const before = await heads();
    const reply = await dryRun();
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      dry_run: true,
      domain: name,
      patterns: ["path:news"],
      deployments: [
        {
          deployment_site_id: first,
          state: "answered",
          matched: 7,
          samples: [sample],
          instances: [{ instance_id: "one", state: "answered", matched: 7 }],
        },
        {
          deployment_site_id: second,
          state: "unreachable",
          matched: null,
          samples: [],
          last_seen: api.clock.toISOString(),
          instances: [],
        },
      ],
    });
    expect(await heads()).toEqual(before);
  });

  test("tells which instance did not answer, failed, or took too long", async () => {
    const [first = 0, second = 0] = sites;
    api.dryRuns.set(first, [
      { instanceId: "one", result: { matched: 7, samples: [] } },
      { instanceId: "two", result: undefined },
    ]);
    api.dryRuns.set(second, [
      { instanceId: "three", result: { matched: 0, samples: [], over_budget: true } },
      { instanceId: "four", result: { matched: 0, samples: [], error: "the index is closed" } },
    ]);
    expect(deployments(await dryRun("True"))).toMatchObject([
      { state: "pending", matched: 7, instances: [{ state: "answered" }, { state: "pending" }] },
      {
        state: "failed",
        matched: null,
        over_budget: true,
        error: "the index is closed",
        instances: [{ state: "answered", matched: null, over_budget: true }, { state: "failed" }],
      },
    ]);
  });

  test("is refused as the clear would be, and `false` is a clear", async () => {
    const bad = { url_path_patterns: ["a.html"], dry_run: true };
    const path = `/clear-accelerator-cache/${name}/`;
    expect((await api.call("POST", path, { token, body: bad })).status).toBe(400);
    const body = { url_path_patterns: ["a"], dry_run: "maybe" };
    expect((await api.call("POST", path, { token, body })).status).toBe(400);
    expect((await dryRun(false)).body).toHaveProperty("clear_id");
  });

  async function dryRun(dry_run: unknown = true): Promise<Reply> {
    const body = { url_path_patterns: ["path:news"], dry_run };
    return api.call("POST", `/clear-accelerator-cache/${name}/?wait=0.05`, { token, body });
  }
});
