// The demo's origin over real sockets: what each path promises an edge, and that starting and stopping end.

import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { drawCard } from "../../src/demo/card.ts";
import { startDemoBackend } from "../../src/demo/backend.ts";

async function startBackend(): Promise<string> {
  const stop = new AbortController();
  const backend = await startDemoBackend({ host: "127.0.0.1", port: 0, stop: stop.signal });
  onTestFinished(async () => backend[Symbol.asyncDispose]());
  return backend.url;
}

const originRequest = (response: Response): number =>
  Number(response.headers.get("x-origin-request"));

test("every path counts its own requests", async () => {
  const url = await startBackend();
  expect(originRequest(await fetch(`${url}/api/clock`))).toBe(1);
  expect(originRequest(await fetch(`${url}/api/clock?again`))).toBe(2);
  expect(originRequest(await fetch(`${url}/generated/card.svg?seed=1`))).toBe(1);
  expect(originRequest(await fetch(`${url}/api/clock`, { method: "HEAD" }))).toBe(3);
});

test("the clock is never the same and never stored", async () => {
  const url = await startBackend();
  const response = await fetch(`${url}/api/clock`);
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(response.headers.get("content-type")).toBe("application/json");
  const before = Date.now();
  const second: unknown = await (await fetch(`${url}/api/clock`)).json();
  expect(second).toEqual({ time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), count: 2 });
  const time =
    typeof second === "object" && second !== null && "time" in second
      ? Date.parse(String(second.time))
      : Number.NaN;
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThanOrEqual(Date.now());
});

describe("card", () => {
  test("is drawn from its seed alone", async () => {
    const url = await startBackend();
    const [first, again, other] = await Promise.all(
      ["7", "7&utm_visit=2", "8"].map(async (query) =>
        fetch(`${url}/generated/card.svg?seed=${query}`),
      ),
    );
    expect(first?.headers.get("content-type")).toBe("image/svg+xml");
    expect(first?.headers.get("cache-control")).toBe("public, max-age=600");
    expect(first?.headers.get("etag")).toBe(again?.headers.get("etag"));
    expect(first?.headers.get("etag")).not.toBe(other?.headers.get("etag"));
    const svg = await first?.text();
    expect(svg).toBe(await again?.text());
    expect(svg).toMatch(/^<svg [^]*No\. 7 · [^]*<\/svg>\n$/);
    expect(svg).not.toBe(await other?.text());
  });

  test.each([0, 1, 2, 3, 99, 65_536, 0xffff_ffff])("seed %i draws numbers, not NaN", (seed) => {
    expect(drawCard(seed)).not.toMatch(/NaN|undefined|Infinity/);
  });

  test("304 for whoever has it", async () => {
    const url = await startBackend();
    const card = `${url}/generated/card.svg?seed=3`;
    const first = await fetch(card);
    await first.body?.cancel();
    const etag = first.headers.get("etag") ?? "";
    const lastModified = first.headers.get("last-modified") ?? "";
    const rows: [Record<string, string>, number][] = [
      [{ "if-none-match": etag }, 304],
      [{ "if-none-match": `"other", W/${etag}` }, 304],
      [{ "if-none-match": "*" }, 304],
      [{ "if-none-match": '"other"' }, 200],
      [{ "if-modified-since": lastModified }, 304],
      [{ "if-modified-since": "Wed, 31 Dec 2025 23:59:59 GMT" }, 200],
      [{ "if-modified-since": "yesterday" }, 200],
      [{ "if-none-match": '"other"', "if-modified-since": lastModified }, 200],
    ];
    for (const [headers, status] of rows) {
      const response = await fetch(card, { headers });
      expect({ headers, status: response.status }).toEqual({ headers, status });
      expect(response.headers.get("etag")).toBe(etag);
      const body = await response.text();
      expect(body === "").toBe(status === 304);
    }
  });

  test.each(["x", "-1", "1.5", "4294967296", ""])("seed %j is refused", async (seed) => {
    const response = await fetch(`${await startBackend()}/generated/card.svg?seed=${seed}`);
    expect(response.status).toBe(400);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });
});

test("log pages are cacheable text with a number of their own", async () => {
  const url = await startBackend();
  const response = await fetch(`${url}/generated/page/41.html`);
  expect(response.headers.get("cache-control")).toBe("public, max-age=600");
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(await response.text()).toContain("<h1>Page 41</h1>");
  expect((await fetch(`${url}/generated/page/1000000.html`)).status).toBe(404);
  expect((await fetch(`${url}/generated/page/x.html`)).status).toBe(404);
});

test("HEAD has the headers of GET and no body", async () => {
  const url = await startBackend();
  for (const path of [
    "/generated/card.svg?seed=5",
    "/generated/page/5.html",
    "/private",
    "/set-cookie",
    "/stream?ms=0",
    "/slow?ms=0",
    "/nothing",
  ]) {
    const get = await fetch(url + path);
    const bytes = (await get.arrayBuffer()).byteLength;
    const head = await fetch(url + path, { method: "HEAD" });
    expect({ path, status: head.status, type: head.headers.get("content-type") }).toEqual({
      path,
      status: get.status,
      type: get.headers.get("content-type"),
    });
    expect((await head.arrayBuffer()).byteLength).toBe(0);
    if (path !== "/stream?ms=0") expect(Number(head.headers.get("content-length"))).toBe(bytes);
  }
});

test.each([200, 201, 204, 205, 304, 404, 410, 418, 500, 503, 599])(
  "/status/%i answers that",
  async (status) => {
    const response = await fetch(`${await startBackend()}/status/${status}`);
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(
      [204, 205, 304].includes(status) ? "" : `status ${status}\n`,
    );
  },
);

test("redirect statuses lead somewhere, others are refused", async () => {
  const url = await startBackend();
  const moved = await fetch(`${url}/status/308`, { redirect: "manual" });
  expect([moved.status, moved.headers.get("location")]).toEqual([308, "/"]);
  for (const path of ["/status/199", "/status/600", "/status/100"])
    expect((await fetch(url + path)).status).toBe(400);
  expect((await fetch(`${url}/status/20`)).status).toBe(404);
});

test("what must not be shared says so", async () => {
  const url = await startBackend();
  expect((await fetch(`${url}/private`)).headers.get("cache-control")).toBe("private, max-age=600");
  await fetch(`${url}/set-cookie`);
  const cookie = await fetch(`${url}/set-cookie`);
  expect(cookie.headers.getSetCookie()).toEqual(["visit=2; Path=/; HttpOnly; SameSite=Lax"]);
  expect(cookie.headers.get("cache-control")).toBe("public, max-age=600");
});

test.each(["POST", "PUT"])("echo of %s", async (method) => {
  const response = await fetch(`${await startBackend()}/echo?a=1`, {
    method,
    body: "x".repeat(100_000),
    headers: { "x-sent": "yes" },
  });
  expect(await response.json()).toMatchObject({
    method,
    url: "/echo?a=1",
    headers: { "x-sent": "yes" },
    body_bytes: 100_000,
  });
});

test("other methods are refused with those allowed", async () => {
  const url = await startBackend();
  const echo = await fetch(`${url}/echo`);
  expect([echo.status, echo.headers.get("allow")]).toEqual([405, "POST, PUT"]);
  const clock = await fetch(`${url}/api/clock`, { method: "DELETE" });
  expect([clock.status, clock.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  const unknown = await fetch(`${url}/nowhere`, { method: "PATCH", body: "x" });
  expect([unknown.status, unknown.headers.get("content-type"), await unknown.text()]).toEqual([
    404,
    "text/plain; charset=utf-8",
    "the origin has nothing at /nowhere\n",
  ]);
});

test("the stream is chunked, and as long as asked", async () => {
  const url = await startBackend();
  const response = await fetch(`${url}/stream?chunks=3&ms=1`);
  expect(response.headers.get("transfer-encoding")).toBe("chunked");
  expect(await response.text()).toBe("wave 1 of 3\nwave 2 of 3\nwave 3 of 3\n");
  expect((await fetch(`${url}/stream?chunks=101`)).status).toBe(400);
  expect((await fetch(`${url}/stream?ms=251`)).status).toBe(400);
});

test("slow waits, and not longer than it may", async () => {
  const url = await startBackend();
  const began = performance.now();
  expect(await (await fetch(`${url}/slow?ms=30`)).text()).toBe("answered after 30 ms\n");
  expect(performance.now() - began).toBeGreaterThanOrEqual(28);
  expect((await fetch(`${url}/slow?ms=soon`)).status).toBe(400);
});

test("stopping ends a slow answer and the stream at once, and closes the port", async () => {
  const stop = new AbortController();
  const backend = await startDemoBackend({ host: "127.0.0.1", port: 0, stop: stop.signal });
  const slow = fetch(`${backend.url}/slow?ms=999999`);
  const stream = await fetch(`${backend.url}/stream?chunks=100&ms=250`);
  const began = performance.now();
  stop.abort();
  const ends = await Promise.allSettled([slow, stream.text(), backend[Symbol.asyncDispose]()]);
  expect(performance.now() - began).toBeLessThan(15_000); // Of 25 s for the stream, and more for the slow one.
  const [slowEnd] = ends;
  if (slowEnd.status === "fulfilled") expect(slowEnd.value.status).toBe(503);
  await expect(fetch(`${backend.url}/api/clock`)).rejects.toThrow();
});

test("a visitor who leaves in the middle of a body leaves the others served", async () => {
  const url = await startBackend();
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  socket.write("POST /echo HTTP/1.1\r\nHost: origin\r\nContent-Length: 100\r\n\r\nabc", () =>
    resolve(),
  );
  await sent;
  socket.destroy();
  expect((await fetch(`${url}/api/clock`)).status).toBe(200);
});

test("odd request targets are answered", async () => {
  const url = await startBackend();
  for (const path of ["*", "//", "/%zz"]) {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const method = path === "*" ? "OPTIONS" : "GET";
    httpRequest({ host: "127.0.0.1", port: new URL(url).port, path, method }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .once("error", reject)
      .end();
    expect(await promise).toBe(404);
  }
});

test("a taken port is named", async () => {
  const url = await startBackend();
  const port = Number(new URL(url).port);
  const stop = new AbortController();
  await expect(
    startDemoBackend({ host: "127.0.0.1", port, stop: stop.signal }),
  ).rejects.toMatchObject({ code: "PORT_TAKEN" });
});
