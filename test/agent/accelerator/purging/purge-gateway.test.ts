// Purge requests on real sockets: who may, what is asked of main, what is answered, and that nobody else sees them.

import { createHash } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTls } from "node:tls";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import type { PurgeOutcome } from "../../../../src/agent/accelerator/purging/purge-messages.ts";
import type { PurgeShare } from "../../../../src/core/purge/purge-items.ts";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { ask, host, openEdge, openOrigin, raw, type Edge, type EdgeOptions } from "../edge.ts";
import { openSecure } from "../secure-stage.ts";

const key = "a-secret";
const purge = {
  addresses: ["127.0.0.1"],
  keys: [createHash("sha256").update(key).digest("hex")],
};
const keysOnly = { addresses: [], keys: purge.keys };
const scope = { domain: host, host: null };

class Asked {
  readonly shares: PurgeShare[] = [];
  outcome: PurgeOutcome = { kind: "cleared", ids: ["purge-1"], matched: 3 };

  async clear(shares: readonly PurgeShare[]): Promise<PurgeOutcome> {
    this.shares.push(...shares);
    return this.outcome;
  }
}

async function opened(
  site: SiteInput = { purge },
  options: EdgeOptions = {},
): Promise<AsyncDisposable & { readonly edge: Edge; readonly asked: Asked }> {
  const asked = new Asked();
  const edge = await openEdge({ site, purges: asked, ...options });
  return { edge, asked, [Symbol.asyncDispose]: async () => edge[Symbol.asyncDispose]() };
}

const request = (method: string, path: string, ...fields: readonly string[]): string =>
  [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...fields, "Connection: close", "", ""].join(
    "\r\n",
  );
const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")));

describe("the requests of real clients, whom every verdict would block", () => {
  test.each([
    [
      "WordPress/6.4; https://www.example.com",
      "PURGE",
      "/a/",
      ["X-Purge-Method: default"],
      { urls: [`https://${host}/a/`] },
    ],
    [
      "WordPress/6.4; https://www.example.com",
      "PURGE",
      "/.*",
      ["X-Purge-Method: regex"],
      { hosts: [host] },
    ],
    ["GuzzleHttp/7", "BAN", "/", ["Cache-Tags: node:1 node:2"], { tags: ["node:1", "node:2"] }],
    ["GuzzleHttp/7", "URIBAN", "/a.jpg?itok=1", [], { urls: [`https://${host}/a.jpg?itok=1`] }],
    ["GuzzleHttp/7", "PURGE", "/", ["xkey: product-1"], { tags: ["product-1"] }],
    ["curl/8.5.0", "PURGE", "/a?b=1", ["Accept: */*"], { urls: [`https://${host}/a?b=1`] }],
    ["python-requests/2.31.0", "BAN", "/", ["Content-Length: 0"], { hosts: [host] }],
    [
      "Magento",
      "PURGE",
      "/",
      ["X-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))"],
      { tags: ["cat_p_1"] },
    ],
  ] as const)("%s: %s %s %j", async (agent, method, path, fields, items) => {
    const judge = () => ({ kind: "block", reason: "bad-bot", bot: null }) as const;
    await using s = await opened(
      { purge, tls: { redirect_http: true } },
      {
        judge: judge as unknown as NonNullable<EdgeOptions["judge"]>,
        visitors: { requestsMax: 1 },
      },
    );
    const answer = await raw(s.edge, request(method, path, `User-Agent: ${agent}`, ...fields));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodyOf(answer)).toMatchObject({ clear_id: "purge-1", matched: 3 });
    expect(s.asked.shares).toEqual([{ scope, items }]);
    expect(s.edge.records).toMatchObject([{ response_status: 200, domain: host, cache: "none" }]);
  });
});

test("several requests on one connection are answered in their order", async () => {
  await using s = await opened();
  const fields = `Host: ${host}\r\n\r\n`;
  const text = `BAN /a/ HTTP/1.1\r\n${fields}PURGE /b HTTP/1.1\r\n${fields}${request("URIBAN", "/c")}`;
  const answer = await raw(s.edge, text);
  expect(answer.match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
  expect(s.asked.shares.map(({ items }) => items)).toEqual([
    { prefixes: [`https://${host}/a/`] },
    { urls: [`https://${host}/b`] },
    { urls: [`https://${host}/c`] },
  ]);
});

describe("who may", () => {
  test("a key may from anywhere", async () => {
    await using s = await opened({ purge: keysOnly });
    const wrong = await raw(s.edge, request("PURGE", "/a", "Authorization: Bearer wrong"));
    expect(wrong).toMatch(/^HTTP\/1\.1 403 /);
    for (const field of [`Authorization: Bearer ${key}`, `X-Purge-Key: ${key}`])
      expect(await raw(s.edge, request("PURGE", "/a", field))).toMatch(/^HTTP\/1\.1 200 /);
    expect(s.asked.shares).toHaveLength(2);
  });

  test.each([
    ["a site that nobody serves", "/a", "nosuch.example:8080"],
    ["an absolute URL of another host", "http://nosuch.example/a", host],
  ])("a key may not where the request names %s", async (_what, target, named) => {
    await using s = await opened({ purge: keysOnly });
    const text = request("PURGE", target, `X-Purge-Key: ${key}`).replace(host, named);
    const answer = await raw(s.edge, text);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(bodyOf(answer)).toMatchObject({ error: expect.stringContaining("nosuch.example") });
    expect(s.asked.shares).toEqual([]);
  });

  test.each(["127.0.0.1:80", "[::1]:80", "varnish", "localhost:6081"])(
    "a key means all of its sites where the request names the accelerator: %s",
    async (named) => {
      await using s = await opened({ purge: keysOnly });
      const text = request("PURGE", "/a", `X-Purge-Key: ${key}`).replace(host, named);
      expect(await raw(s.edge, text)).toMatch(/^HTTP\/1\.1 200 /);
      expect(s.asked.shares).toEqual([{ scope, items: { urls: ["/a"] } }]);
    },
  );

  test("an X-Forwarded-For of somebody who is not trusted says nothing", async () => {
    const site = { purge: { addresses: ["192.0.2.1"] } };
    await using stranger = await opened(site);
    const said = request("PURGE", "/a", "X-Forwarded-For: 192.0.2.1");
    expect(await raw(stranger.edge, said)).toMatch(/^HTTP\/1\.1 403 /);
    expect(stranger.asked.shares).toEqual([]);
    await using behind = await opened(site, { trusted: ["127.0.0.1"] });
    expect(await raw(behind.edge, said)).toMatch(/^HTTP\/1\.1 200 /);
    const forged = request("PURGE", "/a", "X-Forwarded-For: 192.0.2.1, 198.51.100.1");
    expect(await raw(behind.edge, forged)).toMatch(/^HTTP\/1\.1 403 /);
  });

  test("a proxy's own address is not that of who asks it", async () => {
    await using s = await opened({ purge }, { trusted: ["127.0.0.1"] });
    const answer = await raw(s.edge, request("BAN", "/", "X-Forwarded-For: 198.51.100.1"));
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  });

  test("behind PROXY it is the address that its header names", async () => {
    const site = { purge: { addresses: ["192.0.2.1"] } };
    const options = { trusted: ["127.0.0.1"], proxyProtocol: "required" } as const;
    await using s = await opened(site, options);
    const from = (address: string): string => `PROXY TCP4 ${address} 127.0.0.1 1234 80\r\n`;
    const ban = request("BAN", "/a/");
    expect(await raw(s.edge, from("192.0.2.1") + ban)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await raw(s.edge, from("192.0.2.2") + ban)).toMatch(/^HTTP\/1\.1 403 /);
  });

  test.each([{}, { purge: { addresses: [], keys: [] } }])(
    "without %j nobody may, and no origin is asked",
    async (site) => {
      let asked = 0;
      await using origin = await openOrigin((_request, response) => {
        asked++;
        response.end();
      });
      const backend = { urls: [origin.url] };
      await using s = await opened({ ...site, backend });
      for (const method of ["PURGE", "BAN", "URIBAN"]) {
        const answer = await raw(s.edge, request(method, "/a", `X-Purge-Key: ${key}`));
        expect(answer).toMatch(/^HTTP\/1\.1 405 /);
        expect(answer).toMatch(/\r\nAllow: GET, HEAD/);
      }
      expect(asked).toBe(0);
      expect(s.asked.shares).toEqual([]);
    },
  );
});

test("an expression outside the grammar is 400 and says what is taken", async () => {
  await using s = await opened();
  const answer = await raw(s.edge, request("PURGE", "/", "X-Magento-Tags-Pattern: (a+)+$"));
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(bodyOf(answer)).toMatchObject({ error: expect.stringContaining("takes") });
  expect(s.asked.shares).toEqual([]);
});

test("a clear that failed is 503, and one that cannot be meant is 400", async () => {
  await using s = await opened();
  s.asked.outcome = { kind: "failed", message: "the disk is full" };
  const failed = await raw(s.edge, request("PURGE", "/a"));
  expect(failed).toMatch(/^HTTP\/1\.1 503 /);
  expect(failed).toMatch(/\r\nRetry-After: 1\r\n/);
  s.asked.outcome = { kind: "refused", message: "the URL is odd" };
  expect(await raw(s.edge, request("PURGE", "/a"))).toMatch(/^HTTP\/1\.1 400 /);
});

describe("over HTTPS", () => {
  test("BAN comes whole over TLS", async () => {
    const asked = new Asked();
    await using s = await openSecure({ site: { purge }, purges: asked });
    const socket = connectTls({
      port: s.port,
      host: "127.0.0.1",
      servername: host,
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
    });
    let answer = "";
    socket.on("data", (bytes: Buffer) => (answer += bytes.toString("latin1")));
    await once(socket, "secureConnect");
    socket.write(request("BAN", "/", "Cache-Tags: a"));
    await once(socket, "close");
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(asked.shares).toEqual([{ scope, items: { tags: ["a"] } }]);
  });

  test.each(["PURGE", "BAN", "URIBAN"])("%s by HTTP/2", async (method) => {
    const asked = new Asked();
    await using s = await openSecure({ site: { purge }, purges: asked });
    const session = connectHttp2(`https://127.0.0.1:${s.port}`, {
      servername: host,
      rejectUnauthorized: false,
    });
    const stream = session.request({ ":method": method, ":path": "/a", ":authority": host });
    stream.end();
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    stream.resume();
    await once(stream, "close");
    session.close();
    expect(headers[":status"]).toBe(200);
    expect(asked.shares).toHaveLength(1);
  });
});

describe("Cloudflare's call", () => {
  const path = "/client/v4/zones/0123456789abcdef0123456789abcdef/purge_cache";
  const authorization = `Bearer ${key}`;

  test("clears what its key names, whatever Host says", async () => {
    await using s = await opened({ purge: keysOnly });
    const answer = await ask(s.edge, path, {
      method: "POST",
      host: "api.cloudflare.com",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ files: [`https://${host}/a`] }),
    });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toMatchObject({ success: true, result: { id: "purge-1" } });
    expect(s.asked.shares).toEqual([{ scope, items: { urls: [`https://${host}/a`] } }]);
  });

  test("refuses a stranger's host, a body that is none, and no key, in Cloudflare's form", async () => {
    await using s = await opened({ purge: keysOnly });
    const call = async (body: string, headers: Record<string, string>): Promise<unknown[]> => {
      const { status, text } = await ask(s.edge, path, { method: "POST", headers, body });
      return [status, JSON.parse(text)];
    };
    const failed = expect.objectContaining({ success: false });
    const elsewhere = JSON.stringify({ hosts: ["www.example.org"] });
    expect(await call(elsewhere, { authorization })).toEqual([400, failed]);
    expect(await call("{", { authorization })).toEqual([400, failed]);
    expect(await call('{"purge_everything": true}', {})).toEqual([403, failed]);
    expect(s.asked.shares).toEqual([]);
  });

  test("is an ordinary request where nobody may purge", async () => {
    await using origin = await openOrigin((_request, response) => response.end("mine"));
    await using s = await opened({ backend: { urls: [origin.url] } });
    const answer = await ask(s.edge, path, {
      method: "POST",
      headers: { authorization },
      body: "{}",
    });
    expect(answer.text).toBe("mine");
  });
});
