// The pool with real threads: publishing without steps back, replacing the dead and the stuck, ports, metrics, draining.

import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sumOf } from "../../../../src/agent/admin/domain-reports.ts";
import { exposeMetrics } from "../../../../src/base/metrics.ts";
import { proxyV1 } from "../../../support/proxy-headers.ts";
import { until } from "../../../support/until.ts";
import { ask, openOrigin, raw, stateOf } from "../edge.ts";
import { start, stateWithVersion, versionSeen } from "../pool-rig.ts";

describe("publishing", () => {
  it("is never taken back: whoever saw a version never sees an older one", async () => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    let newestSeen = 0;
    const done = new AbortController();
    let asked = 0;
    const visitor = async (): Promise<void> => {
      while (!done.signal.aborted) {
        const atLeast = newestSeen;
        const seen = await versionSeen(s.pool);
        expect(seen).toBeGreaterThanOrEqual(atLeast);
        newestSeen = Math.max(newestSeen, seen);
        asked++;
      }
    };
    const visitors = Array.from({ length: 6 }, visitor);
    for (let n = 0; n < 60; n++) {
      const version = await s.pool.publish(stateWithVersion);
      // Whoever asks after publish has resolved gets this version, whichever worker it is.
      expect(await versionSeen(s.pool)).toBeGreaterThanOrEqual(version);
    }
    done.abort();
    await Promise.all(visitors);
    expect(newestSeen).toBe(61);
    expect(asked).toBeGreaterThan(60);
  });

  it("changes nothing when it cannot be made durable", async () => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    const full = s.pool.publish(stateWithVersion, () => {
      throw new Error("disk full");
    });
    await expect(full).rejects.toThrow("disk full");
    expect(await versionSeen(s.pool)).toBe(1);
    expect(s.pool.status().version).toBe(1);
    let sawBefore = 0;
    const version = await s.pool.publish(
      stateWithVersion,
      () => (sawBefore = s.pool.status().version),
    );
    expect(sawBefore).toBe(1); // Durable before it is in force.
    expect(await versionSeen(s.pool)).toBe(version);
  });

  it("changes nothing when a worker cannot stage it", async () => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    // No table of hosts can be made of it.
    const broken = s.pool.publish(
      (version) => ({ ...stateWithVersion(version), domains: 7 }) as never,
    );
    await expect(broken).rejects.toThrow(/not iterable|not a function/);
    expect(s.pool.status()).toMatchObject({ version: 1, live: 2 });
    expect(await versionSeen(s.pool)).toBe(1);
    expect(await s.pool.publish(stateWithVersion)).toBe(3);
    expect(await versionSeen(s.pool)).toBe(3);
  });

  it("before the first: 503", async () => {
    await using s = await start();
    expect((await ask(s.pool, "/v")).status).toBe(503);
  });
});

describe("a worker that", () => {
  it.each([
    ["dies", "die"],
    ["throws", "throw"],
    ["is stuck", "spin"],
  ])("%s is replaced, with the state in force", async (_name, agent) => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    const harmed = raw(
      s.pool,
      `GET /v HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: ${agent}\r\n\r\n`,
    );
    await until("a replacement", () => s.pool.status().replacements === 1);
    await until("both live", () => s.pool.status().live === 2);
    await harmed;
    for (let n = 0; n < 20; n++) expect(await versionSeen(s.pool)).toBe(1);
    expect(s.starts.length).toBe(3);
    expect(s.health.list()).toMatchObject([{ code: "worker_replaced" }]);
    expect(await s.registry.metrics()).toContain("accel_agent_worker_replacements_total 1");
  });

  it("cannot start is tried again", async () => {
    await using s = await start({ failingStarts: new Set([3]) });
    await s.pool.publish(stateWithVersion);
    await raw(s.pool, "GET /v HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: die\r\n\r\n");
    await until("both live", () => s.pool.status().live === 2 && s.starts.length === 4);
    for (let n = 0; n < 20; n++) expect(await versionSeen(s.pool)).toBe(1);
  });

  it("is stuck leaves the quorum, and what waits for it is published", async () => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    const connection = "User-Agent: spin\r\nConnection: close";
    const harmed = raw(s.pool, `GET /v HTTP/1.1\r\nHost: www.example.com\r\n${connection}\r\n\r\n`);
    let before: string[] = [];
    await until("a heartbeat that stands still", async () => {
      const now = Object.entries(s.pool.heartbeats()).map(String);
      const stands = now.some((beat) => before.includes(beat));
      before = now;
      await sleep(400);
      return stands;
    });
    expect(await s.pool.publish(stateWithVersion)).toBe(2);
    await harmed;
    await until("both live", () => s.pool.status().live === 2);
    for (let n = 0; n < 20; n++) expect(await versionSeen(s.pool)).toBe(2);
  });

  it("takes long to start is waited for", async () => {
    await using s = await start({ count: 1, startMs: 3_000, stuckMs: 2_000 });
    await s.pool.publish(stateWithVersion);
    expect(await versionSeen(s.pool)).toBe(1);
    expect(s.starts).toEqual([1]);
  });

  it("cannot start at the beginning is an error, and nothing is left running", async () => {
    await expect(start({ failingStarts: new Set([1]) })).rejects.toThrow("this start fails");
  });
});

describe("the port", () => {
  it("in use is an error that names it", async () => {
    const other = createServer();
    const { promise, resolve } = Promise.withResolvers<number>();
    other.listen(0, "127.0.0.1", () => {
      const address = other.address();
      resolve(address !== null && typeof address === "object" ? address.port : 0);
    });
    const port = await promise;
    await expect(start({ listen: { host: "127.0.0.1", port } })).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: expect.stringContaining(`127.0.0.1:${port}`),
    });
    other.close();
  });

  it("of another agent's workers is in use, though they share theirs", async () => {
    await using s = await start();
    const { port } = s.pool;
    await expect(start({ listen: { host: "127.0.0.1", port } })).rejects.toMatchObject({
      code: "PORT_TAKEN",
    });
  });

  it("of an address that is not ours is unusable", async () => {
    await expect(start({ listen: { host: "192.0.2.1", port: 0 } })).rejects.toMatchObject({
      code: "ADDRESS_UNUSABLE",
    });
  });
});

describe("proxies", () => {
  it("that have to say who the visitor is are heard by every worker, others are cut and counted", async () => {
    const required = { forwardedHeader: "forwarded", proxyProtocol: "required" } as const;
    await using s = await start({ proxies: { trusted: ["127.0.0.1"], ...required } });
    await s.pool.publish(stateWithVersion);
    const asked = "GET /v HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n";
    expect(await raw(s.pool, `${proxyV1("192.0.2.7")}${asked}`)).toContain("307");
    await until("heard by both", async () => {
      expect(await raw(s.pool, asked)).toBe("");
      const parts = await s.pool.metrics();
      const line = 'accel_agent_proxy_header_refused_total{reason="invalid"}';
      const texts = await Promise.all(parts.map(async (part) => exposeMetrics([part])));
      return texts.filter((text) => text.includes(line)).length === 2;
    });
  });
});

describe("metrics", () => {
  it("are of all workers and do not fall when one is replaced", async () => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    for (let n = 0; n < 20; n++) await versionSeen(s.pool);
    const line = 'accel_agent_requests_total{domain="www.example.com",cache="none",status="3xx"}';
    const total = async (): Promise<string> => {
      const text = await exposeMetrics(await s.pool.metrics());
      return text.split("\n").find((one) => one.startsWith(line)) ?? text;
    };
    expect(await total()).toBe(`${line} 20`);
    await raw(s.pool, "GET /v HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: die\r\n\r\n");
    await until("both live", () => s.pool.status().live === 2 && s.starts.length === 3);
    expect(await total()).toBe(`${line} 20`);
    expect(Object.keys(s.pool.heartbeats())).toHaveLength(2);
  });

  it("count a worker once that leaves while all are asked; so do the sums", async () => {
    await using s = await start();
    await s.pool.publish(stateWithVersion);
    for (let n = 0; n < 20; n++) await versionSeen(s.pool);
    const total = async (): Promise<number> =>
      sumOf(await s.pool.metrics(), "accel_agent_requests_total");
    expect([await total(), (await s.pool.sums()).requests]).toEqual([20, 20]);
    const harmed = raw(
      s.pool,
      "GET /v HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: spin\r\n\r\n",
    );
    const seen = new Set<number>();
    await until("a replacement", async () => {
      const [metrics, sums] = await Promise.all([total(), s.pool.sums()]);
      seen.add(metrics).add(sums.requests);
      return s.pool.status().replacements === 1;
    });
    await harmed;
    seen.add(await total()).add((await s.pool.sums()).requests);
    expect([...seen]).toEqual([20]);
  });
});

describe("stopping", () => {
  it("answers what is under way, records it, and frees the port", async () => {
    const held: (() => void)[] = [];
    await using origin = await openOrigin((_q, r) => void held.push(() => r.end("late")));
    const s = await start();
    await s.pool.publish((version) => stateOf(version, { backend: { urls: [origin.url] } }));
    const late = ask(s.pool, "/");
    const release = await until("under way", () => held[0]);
    const stopped = s[Symbol.asyncDispose]();
    release();
    expect((await late).text).toBe("late");
    await stopped;
    expect(s.records()).toBe(1);
    await using again = await start({ listen: { host: "127.0.0.1", port: s.pool.port } });
    expect(again.pool.port).toBe(s.pool.port);
  });
});
