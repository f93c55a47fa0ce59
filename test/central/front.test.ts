// What all answers of central carry so that a browser does nothing with them but show them, and what is said while it stops.

import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { startFront } from "../../src/central/front.ts";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";

const paths = [
  "/",
  "/about/",
  "/nothing/here",
  "/metrics",
  "/readyz",
  "/presentation-api/v1/customer/",
  "/presentation-api/v1/no-such-path/",
  "/presentation-api/v1/openapi.json",
  "/mail/recover/",
];

test.each([
  ["http://127.0.0.1:8000", null],
  ["https://central.example.com", "max-age=31536000"],
])("behind %s every answer says what it is not for", async (baseUrl, transport) => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path, `base_url: ${baseUrl}\n`));
  for (const path of paths) {
    const { headers } = await fetch(central.url + path, { redirect: "manual" });
    const policy = headers.get("content-security-policy") ?? "";
    expect({
      path,
      nosniff: headers.get("x-content-type-options"),
      referrer: headers.get("referrer-policy"),
      resources: headers.get("cross-origin-resource-policy"),
      transport: headers.get("strict-transport-security"),
      framed: /frame-ancestors 'none'/.test(policy),
      loads: /default-src 'none'/.test(policy),
    }).toEqual({
      path,
      nosniff: "nosniff",
      referrer: "no-referrer",
      resources: "same-origin",
      transport,
      framed: true,
      loads: true,
    });
  }
});

test("the console comes compressed as the browser takes it, and its files may be kept", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const get = async (path: string, codings: string): Promise<Response> =>
    fetch(central.url + path, { headers: { "accept-encoding": codings } });
  const page = await get("/", "identity");
  expect(page.headers.get("cache-control")).toBe("no-store");
  expect(page.headers.get("content-security-policy")).toMatch(
    /default-src 'none'.*require-trusted-types-for 'script'/,
  );
  const html = await page.text();
  const files = [...html.matchAll(/"(\/console\/[^"]+)"/g)].map(([, path = ""]) => path);
  expect(files.map((path) => path.replace(/-[\w-]{10}\./, "."))).toEqual([
    "/console/console.css",
    "/console/console.js",
    "/console/live.js",
  ]);
  for (const path of files) {
    const plain = await (await get(path, "identity")).text();
    for (const [codings, coding] of [
      ["br, gzip", "br"],
      ["gzip, br;q=0", "gzip"],
      ["identity", null],
    ] as const) {
      const { headers } = await get(path, codings);
      expect(headers.get("content-encoding")).toBe(coding);
      expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(headers.get("vary")).toBe("accept-encoding");
    }
    // What is compressed is the same; fetch decodes it.
    expect(await (await get(path, "br")).text()).toBe(plain);
    expect(await (await get(path, "gzip")).text()).toBe(plain);
  }
  const sent = await Promise.all(
    ["/", ...files].map(async (path) =>
      Number((await get(path, "br")).headers.get("content-length")),
    ),
  );
  // The first page, all pages in fact: 150 KiB is the limit.
  expect(sent.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(150 * 1_024);
});

test("starts of trials are counted by the /64 of an IPv6 visitor", async () => {
  using dir = tempDir();
  const more = "trusted_proxies: [127.0.0.1]\nlimits:\n  trials_per_address: 2\n";
  await using central = await start(settingsOf(dir.path, more));
  const from = async (address: string, username: string): Promise<number> => {
    const { status } = await fetch(`${central.url}/presentation-api/v1/trial/`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": address },
      body: JSON.stringify({ username }),
    });
    return status;
  };
  expect(await from("2001:db8:0:1::1", "one")).toBe(201);
  expect(await from("2001:db8:0:1:ffff::2", "two")).toBe(201);
  expect(await from("2001:db8:0:1::3", "three")).toBe(429);
  expect(await from("2001:db8:0:2::1", "four")).toBe(201);
});

test("unknown tokens of an address are limited; a token that was good goes on", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const { token } = await call(central.url, "POST", "/trial/", undefined, { username: "good" });
  const get = async (one: string): Promise<Response> =>
    fetch(`${central.url}/presentation-api/v1/customer/`, {
      headers: { authorization: `Token ${one}` },
    });
  expect((await get(String(token))).status).toBe(200);
  const statuses: number[] = [];
  const waits = new Set<string | null>();
  for (let n = 0; n < 150; n++) {
    const { status, headers } = await get(`unknown-${n}`);
    statuses.push(status);
    if (status === 429) waits.add(headers.get("retry-after"));
  }
  expect(statuses.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 401));
  expect([...waits]).toEqual(["1"]);
  expect((await get(String(token))).status).toBe(200);
});

const nobody = (): void => undefined;

type FrontGiven = Parameters<typeof startFront>[0];

async function frontOf(given: Pick<FrontGiven, "stop"> & Partial<FrontGiven>) {
  const { stop } = given;
  return startFront({
    listen: { host: "127.0.0.1", port: 0 },
    customers: nobody,
    mailPages: nobody,
    agents: { handle: nobody, upgrade: nobody },
    registry: new Registry(),
    beforeScrape: async () => undefined,
    version: "0.0.0",
    unreadiness: async () => (stop.aborted ? ["stopping"] : []),
    isLone: () => false,
    warnings: () => [],
    isHttps: false,
    log: silentLog(),
    ...given,
  });
}

test("a stop, and that others have the store alone, is 503 to whoever asks for readiness, and 404 where a balancer asks for that", async () => {
  const stop = new AbortController();
  const lone = { isLone: false };
  await using front = await frontOf({
    unreadiness: async () =>
      stop.signal.aborted ? ["stopping"] : lone.isLone ? ["no way to the store"] : [],
    isLone: () => lone.isLone,
    stop: stop.signal,
  });
  const asked = async (query: string): Promise<readonly [number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${front.port}/readyz${query}`);
    return [answer.status, await answer.text()];
  };
  for (const query of ["", "?stopping=404"]) expect(await asked(query)).toEqual([200, "ready\n"]);
  lone.isLone = true;
  expect(await asked("?stopping=404")).toEqual([404, "no way to the store\n"]);
  expect(await asked("")).toEqual([503, "no way to the store\n"]);
  lone.isLone = false;
  stop.abort();
  expect(await asked("?stopping=404")).toEqual([404, "stopping\n"]);
  for (const query of ["", "?stopping=503"])
    expect(await asked(query)).toEqual([503, "stopping\n"]);
});

test("while an order waits, a central that stops listens on, is 404 to a balancer, and takes others' orders; at the end of its time whoever waits is told", async () => {
  const stop = new AbortController();
  const late = new AbortController();
  const held = Promise.withResolvers<void>();
  const front = await frontOf({
    stop: stop.signal,
    late,
    endTimes: { drainMs: 0, graceMs: 60_000 },
    customers: (request, response) => {
      if (request.url?.endsWith("/held") !== true) response.end("taken");
      else void held.promise.then(() => response.end("held"));
    },
  });
  const at = async (path: string): Promise<readonly [number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${front.port}${path}`);
    return [answer.status, await answer.text()];
  };
  const waiting = at("/presentation-api/v1/held");
  expect(await at("/presentation-api/v1/quick")).toEqual([200, "taken"]);
  stop.abort();
  const over = front[Symbol.asyncDispose]();
  for (let count = 0; count < 20; count++) {
    expect(await at("/readyz?stopping=404")).toEqual([404, "stopping\n"]);
    expect((await at("/readyz"))[0]).toBe(503);
    expect(await at("/presentation-api/v1/quick")).toEqual([200, "taken"]);
  }
  expect(late.signal.aborted).toBe(false);
  held.resolve();
  expect(await waiting).toEqual([200, "held"]);
  await over;
  await expect(at("/readyz")).rejects.toThrow();
});

test("the time of the last end is counted from the stop, and whoever waits then is told before it is cut", async () => {
  const stop = new AbortController();
  const late = new AbortController();
  const come = Promise.withResolvers<void>();
  const front = await frontOf({
    stop: stop.signal,
    late,
    endTimes: { lastMs: 0, graceMs: 60_000 },
    customers: (_, response) => {
      come.resolve();
      late.signal.addEventListener("abort", () => response.writeHead(503).end());
    },
  });
  const waiting = fetch(`http://127.0.0.1:${front.port}/presentation-api/v1/held`);
  await come.promise;
  stop.abort();
  await front[Symbol.asyncDispose]();
  expect((await waiting).status).toBe(503);
});
