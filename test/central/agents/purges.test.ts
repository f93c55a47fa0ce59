// `POST /purges`: what an agent tells of purge requests becomes clears in the journals of the domain's sites.

import { expect, test } from "vitest";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent } from "../../support/fake-agent.ts";

const domain = "www.example.test";
const instance_id = "instance-1";

async function started() {
  const side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  const tell = async (message: unknown): Promise<Response> =>
    agent.call("/purges", { method: "POST", body: JSON.stringify(message) });
  const entries = async () => {
    const found = await side.agentStore.entriesAfter(siteId, 0);
    return found.entries.filter((one) => "kind" in one && one.kind === "cache.clear");
  };
  return { side, tell, entries };
}

test("items become one clear of the domain, with what they say beside it", async () => {
  const { side, tell, entries } = await started();
  await using _ = side;
  const items = { urls: [`https://${domain}/a`, "/b?c=1"], tags: ["node:1"] };
  const answer = await tell({ instance_id, domain, host: null, items });
  expect(answer.status).toBe(204);
  expect(await entries()).toMatchObject([
    {
      body: { domain, patterns: ["kind:static OR kind:generated"] },
      extension: {
        urls: [
          { host: domain, path: "/a" },
          { host: null, path: "/b?c=1" },
        ],
        tags: ["node:1"],
      },
    },
  ]);
  const [clear] = await side.store.selectFrom("clears").select(["host", "items"]).execute();
  expect(clear).toMatchObject({ host: null, items: JSON.stringify(items) });
});

test("a channel is woken by it", async () => {
  const { side, tell } = await started();
  await using _ = side;
  const woken: number[] = [];
  using _listening = side.bus.subscribe((ids) => void woken.push(...ids));
  await tell({ instance_id, domain, host: null, items: { everything: true } });
  expect(woken).toHaveLength(1);
});

test("a host that the domain has no more is left out; the rest is cleared", async () => {
  const { side, tell, entries } = await started();
  await using _ = side;
  const gone = "https://gone.example.test/a";
  await tell({ instance_id, domain, host: null, items: { urls: [gone, "/b"] } });
  expect(await entries()).toMatchObject([{ extension: { urls: [{ host: null, path: "/b" }] } }]);
  expect((await tell({ instance_id, domain, host: null, items: { urls: [gone] } })).status).toBe(
    204,
  );
  expect(await entries()).toHaveLength(1);
});

test("a soft purge is a soft clear, also where a part of it is left out, and its record says so", async () => {
  const { side, tell, entries } = await started();
  await using _ = side;
  const gone = "https://gone.example.test/a";
  await tell({ instance_id, domain, host: null, items: { urls: [gone, "/b"], soft: true } });
  expect(await entries()).toMatchObject([
    { extension: { urls: [{ host: null, path: "/b" }], soft: true } },
  ]);
  const [clear] = await side.store.selectFrom("clears").select("items").execute();
  expect(clear).toEqual({ items: JSON.stringify({ urls: ["/b"], soft: true }) });
});

test("more than one clear can spell is everything, softly if it was", async () => {
  const { side, tell, entries } = await started();
  await using _ = side;
  // Each is allowed alone; a form sends these characters in many ways.
  const urls = Array.from({ length: 1_000 }, (_one, no) => `/é'(~)?é'(~)=ü ${no}`);
  const told = await tell({ instance_id, domain, host: null, items: { urls, soft: true } });
  expect(told.status).toBe(204);
  const [clear] = await side.store.selectFrom("clears").select("items").execute();
  expect(clear).toEqual({ items: JSON.stringify({ everything: true, soft: true }) });
  expect(await entries()).toMatchObject([
    { body: { patterns: ["kind:static OR kind:generated"] }, extension: { soft: true } },
  ]);
});

test("a domain of another site is refused, and so is what is no message", async () => {
  const { side, tell, entries } = await started();
  await using _ = side;
  const everything = { items: { everything: true } };
  const other = await tell({ instance_id, domain: "www.example.org", host: null, ...everything });
  expect([other.status, await other.json()]).toEqual([
    409,
    expect.objectContaining({ code: "conflict" }),
  ]);
  const sub = await tell({ instance_id, domain, host: "img.example.test", ...everything });
  expect(sub.status).toBe(409);
  expect((await tell({ instance_id, domain, host: null, items: { pages: ["/a"] } })).status).toBe(
    400,
  );
  expect(await entries()).toEqual([]);
});
