// Keys of a devlove that are about origins, stale answers and limits, through the real programs: what a customer writes is what visitors meet.

import { spawnSync } from "node:child_process";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge, type Visit } from "../support/edge.ts";
import { mainFile, node } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000 });

type Origin = AsyncDisposable & { readonly url: string };

async function openOrigin(handler: RequestListener): Promise<Origin> {
  const server = createServer(handler);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** What the origins do, for tests to turn. */
const first = { isUp: true, isFailing: false, answers: 0 };
const stack = new AsyncDisposableStack();
let edge: Edge;

beforeAll(async () => {
  const origins = [
    stack.use(
      await openOrigin((request, response) => {
        if (request.url === "/up") response.writeHead(first.isUp ? 204 : 500).end();
        else if (request.url === "/choice/page")
          response.end(`told ${request.headers.cookie ?? "-"}`);
        else if (first.isFailing) response.writeHead(503).end("trouble");
        else response.writeHead(200, { "Set-Cookie": "session=1" }).end(`first ${++first.answers}`);
      }),
    ),
    stack.use(
      await openOrigin((request, response) => {
        response.writeHead(request.url === "/up" ? 204 : 200).end("second");
      }),
    ),
  ];
  edge = stack.use(await Edge.prepare());
  await edge.startCentral();
  const script = new CustomerScript(edge, "http://127.0.0.1", "devlove-keys");
  await script.enrol();
  await edge.startAgent();
  for (const { name, run } of script.steps()) if (name === "domain") await run();
  // On a busy machine an answer may be late, and is one.
  const health = { path: "/up", interval_s: 1, timeout_s: 60, statuses: [204] };
  const site = {
    backend: { urls: origins.map(({ url }) => url), retries: 0, health },
    limits: {
      requests: [{ path: "/login", methods: ["GET"], rate: 2, per_s: 3_600 }],
      bytes: [{ path: "/slow/**", rate_bytes_s: 1_024, after_bytes: 1 }],
    },
    cache: {
      rules: [
        { path: "/later/**", ttl_s: 1, stale_while_revalidate_s: 600, ignore_set_cookie: true },
        { path: "/error/**", ttl_s: 1, stale_if_error_s: 600, ignore_set_cookie: true },
        {
          path: "/choice/**",
          ttl_s: 600,
          cookies: { bypass: ["session"], vary: ["lang=*", "cur"] },
        },
      ],
    },
  };
  const content = JSON.stringify({ domains: { [domain]: site } });
  const path = `/${domain}/devlove/keys/`;
  expect((await edge.api.post(path, { schema: "devlove/1", content })).status).toBe(201);
  const versions = (await edge.api.get(`/active-viewset/${domain}/`)).body as { id: number }[];
  const at = `/active-viewset/${domain}/${versions[0]?.id ?? 0}/`;
  expect((await edge.api.put(at, {})).status).toBe(200);
  await until("the activation", async () => {
    const { body } = await edge.api.get(at);
    return (body as { activation: string }).activation === "applied";
  });
}, 300_000);

afterAll(async () => stack[Symbol.asyncDispose]());

const get = async (path: string, cookie?: string): Promise<Visit> =>
  edge.visit(path, { host: domain, ...(cookie !== undefined && { headers: { cookie } }) });
const told = ({ status, body }: Visit): string => `${status} ${body.toString()}`;
const cacheOf = ({ headers }: Visit): string => String(headers["cache-status"]);

test("cookies that a rule ignores are stripped, others are passed on", async () => {
  const stored = await get("/later/cookie");
  expect([stored.headers["set-cookie"], cacheOf(stored)]).toEqual([
    undefined,
    expect.stringContaining("stored"),
  ]);
  expect((await get("/plain")).headers["set-cookie"]).toEqual(["session=1"]);
});

test("cookies that a rule varies by tell answers apart, and one that bypasses is passed on", async () => {
  const asked = [
    ["lang=de; _ga=1", "told lang=de", "stored"],
    ["_ga=2; lang=de", "told lang=de", "hit"],
    ["lang=fr; cur=EUR", "told cur=EUR; lang=fr", "stored"],
    ["cur=EUR; lang=fr; _gid=1", "told cur=EUR; lang=fr", "hit"],
    [undefined, "told -", "stored"],
    ["lang=de; session=1", "told lang=de; session=1", "fwd=bypass; detail=cookie"],
    ["lang=de; lang=fr", "told lang=de; lang=fr", "fwd=bypass; detail=cookie"],
    ["lang=de", "told lang=de", "hit"],
  ] as const;
  for (const [cookie, body, how] of asked) {
    const answer = await get("/choice/page", cookie);
    expect([told(answer), cacheOf(answer)]).toEqual([`200 ${body}`, expect.stringContaining(how)]);
  }
});

test("who asks too often is told when to come again; why, records, numbers and metrics say so", async () => {
  const visits = [];
  // Each on a connection of its own: the kernel gives them to both workers, which count together.
  for (let visit = 0; visit < 12; visit++) visits.push(await get("/login"));
  const statuses = visits.map(({ status }) => status);
  expect(statuses).toEqual([200, 200, ...Array.from({ length: 10 }, () => 429)]);
  const [, , refused] = visits;
  if (refused === undefined) throw new Error("nobody was refused");
  const { headers, body } = refused;
  expect(Number(headers["retry-after"])).toBeGreaterThan(1_700);
  expect(String(body)).toContain("Too many requests of this address");
  const why = (about: string) => {
    const where = ["--state-dir", join(edge.dir, "agent")];
    const args = [mainFile, "agent", "why", about, ...where];
    return spawnSync(node, args, { encoding: "utf8" }).stdout;
  };
  const rule = "GET /login: 2 in 3600 s, 2 at once";
  const decision = await until("the decision", () => {
    const said = why(String(headers["x-accel-decision"]));
    return said !== "" && said;
  });
  expect(decision).toContain("then: refused with 429 (request-rate)");
  expect(decision).toContain(`asked more often than the rule allows: ${rule}`);
  expect(why("127.0.0.1")).toContain(`${rule}; 0 more now`);
  expect(why(`http://${domain}/login`)).toContain(`limit of requests  ${rule}`);
  expect(why(`http://${domain}/slow/a`)).toContain(
    "limit of bytes  1024 a second behind the first 1",
  );
  const found = await until("the records", async () => {
    const { body: said } = await edge.api.get(`/requests/${domain}/?verdict=limit`);
    const { requests } = said as { requests: { status: number; reason: string; cache: string }[] };
    return requests.length === 10 && requests;
  });
  for (const request of found)
    expect(request).toMatchObject({
      status: 429,
      reason: "request-rate",
      cache: "none",
      path: "/login",
    });
  await until("the numbers", async () => {
    const { body: said } = await edge.api.get(`/analytics/${domain}/?by=verdict`);
    return (said as { totals: { counts: Record<string, number> } }).totals.counts["limit"] === 10;
  });
  const metrics = await (
    await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)
  ).text();
  expect(metrics).toContain(`accel_agent_limited_total{domain="${domain}",mode="enforce"} 10`);
});

test("a stale answer is served at once, and the next visitor has the new one", async () => {
  const before = told(await get("/later/page"));
  const stale = await until("a stale answer", async () => {
    const answer = await get("/later/page");
    return /; hit; ttl=(?:-\d+|0)$/.test(cacheOf(answer)) && answer;
  });
  expect(told(stale)).toBe(before);
  const next = await until("the new answer", async () => {
    const answer = await get("/later/page");
    return told(answer) !== before && answer;
  });
  // Stored meanwhile, or on its way for the refresh when this visitor came.
  expect(cacheOf(next)).toMatch(/; (?:hit|collapsed)/);
});

test("a stale answer stands in for an error", async () => {
  const before = told(await get("/error/page"));
  first.isFailing = true;
  const standing = await until("an error that is hidden", async () => {
    const answer = await get("/error/page");
    return cacheOf(answer).includes("detail=stale-if-error") && answer;
  });
  expect(told(standing)).toBe(before);
  expect(told(await get("/plain"))).toBe("503 trouble");
  first.isFailing = false;
});

test("an origin that fails its check is asked last, and first again when it recovers", async () => {
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)).text();
  const down = (count: number): string => `accel_agent_origins_down{domain="${domain}"} ${count}`;
  expect(told(await get("/plain"))).toMatch(/^200 first/);
  first.isUp = false;
  await until("it is asked last", async () => told(await get("/plain")) === "200 second");
  await until("it is told", async () => (await metrics()).includes(down(1)));
  first.isUp = true;
  await until("it is asked first", async () => told(await get("/plain")).startsWith("200 first"));
  await until("it is told", async () => (await metrics()).includes(down(0)));
});
