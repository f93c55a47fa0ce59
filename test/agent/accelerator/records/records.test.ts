// Every answer has its record, and every record fits the wire.

import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { decodeRequestRecord } from "../../../../src/wire/request-log.ts";
import { until } from "../../../support/until.ts";
import { ask, openEdge, openOrigin, raw, stateOf, type Edge } from "../edge.ts";

async function records(edge: Edge, count: number): Promise<Edge["records"]> {
  await until(`${count} records`, () => edge.records.length >= count);
  expect(edge.records.length).toBe(count);
  for (const record of edge.records)
    expect(decodeRequestRecord(record)).toMatchObject({ ok: true });
  return edge.records;
}

describe("records", () => {
  it("tell of a request what it was and what became of it", async () => {
    await using origin = await openOrigin((_q, r) => void setTimeout(() => r.end("hello"), 20));
    await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
    const before = Date.now() / 1_000;
    const headers = { "user-agent": "Mozilla/5.0 caf\u00c3\u00a9" };
    await ask(edge, "/a%20b?q=1", { headers, host: "WWW.example.com:80" });
    const [record] = await records(edge, 1);
    expect(record).toMatchObject({
      connection: 1,
      response_status: 200,
      request_method: "GET",
      uri_path: "/a%20b?q=1",
      authority: "WWW.example.com:80",
      domain: "www.example.com",
      client_ip: "127.0.0.1",
      cache: "pass",
      verdict: "allow not-a-bot",
      bot: null,
      user_agent: "Mozilla/5.0 café",
    });
    expect(record?.backend_time).toBeGreaterThan(0.015);
    expect(record?.duration).toBeGreaterThanOrEqual(record?.backend_time ?? 1);
    expect(record?.bytes_sent).toBeGreaterThan(100);
    expect(record?.when).toBeGreaterThan(before - 1);
    expect(record?.when).toBeLessThan(Date.now() / 1_000 + 1);
  });

  it("tell how long an origin took by a clock that nobody sets", async () => {
    let edge: Edge | undefined;
    await using origin = await openOrigin((_request, response) => {
      response.writeHead(200, { "cache-control": "private" });
      response.write("hel");
      if (edge !== undefined) edge.skewMs += 3_600_000;
      setTimeout(() => response.end("lo"), 200);
    });
    await using opened = await openEdge({ site: { backend: { urls: [origin.url] } } });
    edge = opened;
    await ask(edge, "/");
    await ask(edge, "/", { method: "POST" });
    for (const { backend_time: took, duration } of await records(edge, 2)) {
      expect(took).toBeGreaterThan(0.1);
      expect(took).toBeLessThanOrEqual(duration);
    }
  });

  it("count connections, not requests", async () => {
    await using edge = await openEdge({ site: {} });
    const get = "GET /x HTTP/1.1\r\nHost: www.example.com\r\n";
    await raw(edge, `${get}\r\n${get}Connection: close\r\n\r\n`);
    await raw(edge, `${get}Connection: close\r\n\r\n`);
    const all = await records(edge, 3);
    expect(all.map(({ connection }) => connection)).toEqual([1, 1, 2]);
    expect(new Set(all.map(({ bytes_sent }) => bytes_sent > 50 && bytes_sent < 1_000))).toEqual(
      new Set([true]),
    );
  });

  it("are cut to what the wire takes", async () => {
    await using edge = await openEdge({ site: {} });
    const headers = { "user-agent": "u".repeat(5_000) };
    await ask(edge, `/${"p".repeat(10_000)}`, { headers });
    const [record] = await records(edge, 1);
    expect([record?.uri_path.length, record?.user_agent?.length]).toEqual([8_192, 1_024]);
  });

  it("are made of what the parser refused, as far as it can be made out", async () => {
    await using edge = await openEdge({ site: {} });
    await raw(edge, "GET /bad HTTP/1.1\r\nHost: a\r\nbad field\r\n\r\n");
    await raw(
      edge,
      "GET /ok HTTP/1.1\r\nHost: www.example.com\r\n\r\nPOST /second HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    );
    const all = await records(edge, 3);
    expect(
      all.map(({ request_method, uri_path, response_status }) => [
        request_method,
        uri_path,
        response_status,
      ]),
    ).toEqual([
      ["GET", "/bad", 400],
      ["GET", "/ok", 404],
      ["POST", "/second", 400],
    ]);
    expect(all[0]).toMatchObject({ authority: "", domain: null, verdict: "none" });
  });

  // In the lane a request waits for the answer to the one before it; node:http hands out both.
  it.each([
    ["in the lane", true, ["/slow"]],
    ["at node:http", false, ["/slow", "/pipelined"]],
  ])(
    "are made of visitors who left, and not of connections without a request, %s",
    async (_where, lane, begun) => {
      let asked = 0;
      await using origin = await openOrigin(() => void asked++);
      await using edge = await openEdge({ lane, site: { backend: { urls: [origin.url] } } });
      const idle = connect(edge.port, "127.0.0.1");
      await until("connected", () => idle.readyState === "open");
      idle.destroy();
      const leaving = connect(edge.port, "127.0.0.1");
      leaving.write(
        "GET /slow HTTP/1.1\r\nHost: www.example.com\r\n\r\nGET /pipelined HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
      );
      await until("asked", () => asked === begun.length);
      leaving.destroy();
      const all = await records(edge, begun.length);
      expect(all.map(({ uri_path, response_status }) => [uri_path, response_status])).toEqual(
        begun.map((path) => [path, 499]),
      );
    },
  );

  it("of blocks carry verdict and bot; the answer a decision to look up", async () => {
    await using edge = await openEdge({
      site: {},
      judge: (_bots, ip, agent) =>
        agent === "curl"
          ? { kind: "block", reason: "bad-set", bot: `botnet of ${ip}` }
          : agent === "friend"
            ? { kind: "allow", reason: "allow-pair", bot: "friend" }
            : { kind: "would-block", reason: "deny-pair", bot: "x" },
    });
    const blocked = await ask(edge, "/", { headers: { "user-agent": "curl" } });
    expect(blocked.status).toBe(403);
    expect(blocked.text).toContain("bad-set");
    expect(blocked.headers).toMatchObject({
      "x-accel-decision": "0123456789abcdef",
      "cache-control": "no-store",
    });
    const passed = await ask(edge, "/", { headers: { "user-agent": "x/1" } });
    expect([passed.status, passed.headers["x-accel-decision"]]).toEqual([404, undefined]);
    await ask(edge, "/", { headers: { "user-agent": "friend" } });
    const all = await records(edge, 3);
    expect(all[0]).toMatchObject({
      response_status: 403,
      cache: "blocked",
      verdict: "block bad-set",
      bot: "botnet of 127.0.0.1",
    });
    expect(all[1]).toMatchObject({ verdict: "would-block deny-pair", bot: "x", cache: "none" });
    expect(all[2]).toMatchObject({ verdict: "allow allow-pair", bot: "friend" });
    const noted = { host: "www.example.com", clientIp: "127.0.0.1", policyOf: undefined };
    expect(edge.decisions).toMatchObject([
      { ...noted, userAgent: "curl", verdict: { kind: "block", reason: "bad-set" } },
      { ...noted, userAgent: "x/1", verdict: { kind: "would-block", bot: "x" } },
    ]);
    expect(edge.decisions[0]?.atMs).toBeGreaterThan(Date.now() - 10_000);
    const metrics = await edge.registry.metrics();
    expect(metrics).toContain(
      'accel_agent_blocked_total{domain="www.example.com",reason="bad-set"} 1',
    );
    expect(metrics).toContain(
      'accel_agent_allowed_total{domain="www.example.com",reason="allow-pair"} 1',
    );
    expect(metrics).toContain(
      'accel_agent_would_block_total{domain="www.example.com",reason="deny-pair"} 1',
    );
    expect(metrics).toContain(
      'accel_agent_requests_total{domain="www.example.com",cache="blocked",status="4xx"} 1',
    );
  });
});

describe("what is served when", () => {
  it("nothing is published yet: 503; no such site: 421; no devlove: 503", async () => {
    await using edge = await openEdge();
    expect(await ask(edge, "/")).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    edge.publish(stateOf(1, null));
    const inactive = await ask(edge, "/");
    expect(inactive.status).toBe(503);
    expect(inactive.text).toContain("devlove");
    expect((await ask(edge, "/", { host: "nobody.example.org" })).text).toContain(
      '"nobody.example.org"',
    );
    edge.publish({ version: 2, domains: [] });
    expect((await ask(edge, "/")).status).toBe(421);
    const all = await records(edge, 4);
    expect(all.map(({ domain }) => domain)).toEqual([null, "www.example.com", null, null]);
  });
});

describe("draining", () => {
  it("answers what is under way, takes nothing new, and ends idle connections", async () => {
    const held: (() => void)[] = [];
    await using origin = await openOrigin((_q, r) => void held.push(() => r.end("late")));
    await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
    const idle = raw(edge, "GET /x HTTP/1.1\r\nHost: nobody.example.org\r\n\r\n");
    const late = raw(edge, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
    const release = await until("under way", () => held[0]);
    const drained = edge.drain(5_000);
    await expect(ask(edge, "/")).rejects.toThrow("ECONNREFUSED");
    expect(await idle).toContain("421");
    release();
    expect(await late).toMatch(/Connection: close[\s\S]*late/);
    await drained;
    await records(edge, 2);
  });

  const get = "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n";
  const post = "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\nhello";
  it.each([
    ["in the lane", get, true],
    ["that the lane lends", post, true],
    ["without the lane", post, false],
  ])(
    "does not carry out a request that crosses the end of its idle connection, %s",
    async (_where, request, usesLane) => {
      let asked = 0;
      await using origin = await openOrigin((q, r) => {
        asked++;
        q.resume().on("end", () => r.end("page"));
      });
      const site = { backend: { urls: [origin.url] } };
      await using edge = await openEdge({ site, lane: usesLane });
      const socket = connect({ port: edge.port, host: "127.0.0.1", allowHalfOpen: true });
      let said = "";
      socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
      const ended = once(socket, "end");
      socket.write(request);
      await until("the answer", () => said.endsWith("page"));
      const drained = edge.drain(60_000);
      await ended;
      for (const crossing of [request, get]) socket.write(crossing);
      socket.end();
      await drained;
      expect([asked, said.match(/^HTTP/gm)?.length]).toEqual([1, 1]);
      await records(edge, 1);
    },
  );

  it("ends by force after the grace", async () => {
    let asked = 0;
    await using origin = await openOrigin(() => void asked++);
    await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
    const stuck = raw(edge, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
    await until("under way", () => asked === 1);
    await edge.drain(100);
    expect(await stuck).toBe("");
    expect((await records(edge, 1))[0]?.response_status).toBe(499);
  });
});
