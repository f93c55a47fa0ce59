// `limits.requests` as visitors meet it, over the lane, node:http and HTTP/2: who is counted, what is told, and that each request is counted once and recorded once.

import { describe, expect, test } from "vitest";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import type { VisitorJudge } from "../../../../src/agent/bots/decisions/evidence.ts";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { decodeRequestRecord } from "../../../../src/wire/request-log.ts";
import { until } from "../../../support/until.ts";
import { ask, Edge, openOrigin, stateOf, type Asked } from "../edge.ts";
import { installed, tableOf, visitByHttp2 } from "../secure-clients.ts";
import { ways, type Way } from "../visited.ts";

type Got = {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
};
type Rules = NonNullable<NonNullable<SiteInput["limits"]>["requests"]>;

const judge: VisitorJudge = (_bots, clientIp) => {
  const set = { host: "www.example.com", version: 1 };
  if (clientIp.startsWith("198.51.100."))
    return { kind: "allow", reason: "vip-set", bot: "Googlebot", set: { ...set, kind: "vip" } };
  if (clientIp.startsWith("203.0.113."))
    return { kind: "block", reason: "bad-set", bot: "evil", set: { ...set, kind: "bad" } };
  if (clientIp.startsWith("203.0.114."))
    return { kind: "would-block", reason: "bad-set", bot: "evil", set: { ...set, kind: "bad" } };
  return { kind: "allow", reason: "not-a-bot", bot: null };
};

/** An edge before an origin whose answers are cached, and one whose are not; its clock can be moved. */
class Limited implements AsyncDisposable {
  readonly edge: Edge;
  passedMs = 0;
  asked = 0;
  readonly #stack: AsyncDisposableStack;
  readonly #site: SiteInput;
  #version = 0;
  #http2: Awaited<ReturnType<typeof visitByHttp2>> | undefined;

  private constructor(stack: AsyncDisposableStack, origin: string, way: Way) {
    this.#stack = stack;
    const real = createClock();
    const clock = { ...real, steadyMs: () => real.steadyMs() + this.passedMs };
    const trusted = ["127.0.0.1", "::1"];
    this.edge = stack.use(new Edge({ lane: way !== "node:http", trusted, judge, clock }));
    const rules = [{ path: "/cached/**", ttl_s: 3_600 }];
    this.#site = { backend: { urls: [origin], retries: 0 }, cache: { rules } };
  }

  static async open(way: Way, requests: Rules, over: SiteInput = {}): Promise<Limited> {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(
      await openOrigin((_request, response) => response.end(`answer ${++limited.asked}`)),
    );
    const limited = new Limited(stack.move(), origin.url, way);
    limited.publish(requests, over);
    await limited.edge.listen();
    if (way === "http2") {
      const port = await limited.edge.listenSecure();
      limited.#http2 = limited.#stack.use(await visitByHttp2(port));
    }
    return limited;
  }

  publish(requests: Rules, over: SiteInput = {}): void {
    const state = stateOf(++this.#version, { ...this.#site, limits: { requests }, ...over });
    this.edge.publish({ ...state, certificates: tableOf(installed()) });
  }

  async from(
    address: string,
    path: string,
    asked: Pick<Asked, "method" | "body"> = {},
  ): Promise<Got> {
    const headers = { "x-forwarded-for": address, "x-forwarded-proto": "https" };
    const { method, body } = asked;
    if (this.#http2 === undefined) return await ask(this.edge, path, { ...asked, headers });
    const said = {
      ...(method !== undefined && { method }),
      ...(body !== undefined && { body: String(body) }),
    };
    return await this.#http2.ask(path, { ...said, headers });
  }

  async statuses(
    address: string,
    path: string,
    count: number,
    asked?: Pick<Asked, "method" | "body">,
  ) {
    const all: number[] = [];
    for (let at = 0; at < count; at++) all.push((await this.from(address, path, asked)).status);
    return all;
  }

  /** What was recorded of so many requests. */
  async records(count: number) {
    await until("the records", () => this.edge.records.length >= count);
    // A central of the release before knows the words as texts.
    for (const record of this.edge.records)
      expect(decodeRequestRecord(record)).toMatchObject({ ok: true });
    expect(this.edge.records).toHaveLength(count);
    return this.edge.records;
  }

  async counted(name: string): Promise<readonly string[]> {
    const text = await this.edge.registry.metrics();
    const lines = text.split("\n").filter((line) => line.startsWith(`accel_agent_${name}{`));
    return lines.map((line) =>
      line.replace(/^.*?\{/, "").replaceAll(/domain="www.example.com",?/g, ""),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

const once: Rules = [{ path: "/**", rate: 1, per_s: 60 }];
const ip = "192.0.2.1";

describe.each(ways)("over %s", (way) => {
  test.each(["/cached/a", "/passed"])(
    "%s: the second request is told when to ask again",
    async (path) => {
      await using limited = await Limited.open(way, once);
      const first = await limited.from(ip, path);
      const second = await limited.from(ip, path);
      expect([first.status, second.status]).toEqual([200, 429]);
      expect(second.text).toBe(
        "429 Too Many Requests\nToo many requests of this address. Ask again in 60 s.\n",
      );
      expect(second.headers).toMatchObject({
        "retry-after": "60",
        "cache-control": "no-store",
        "x-accel-decision": "0123456789abcdef",
        "content-length": String(second.text.length),
        "x-content-type-options": "nosniff",
      });
      limited.passedMs += 30_500;
      expect((await limited.from(ip, path)).headers["retry-after"]).toBe("30");
      limited.passedMs += 31_000;
      expect((await limited.from(ip, path)).status).toBe(200);
      expect(limited.asked).toBe(path === "/passed" ? 2 : 1);
      const records = await limited.records(4);
      expect(
        records.map(({ verdict, cache, response_status: status }) => [verdict, cache, status]),
      ).toEqual([
        ["allow not-a-bot", path === "/passed" ? "pass" : "miss", 200],
        ["limit request-rate", "none", 429],
        ["limit request-rate", "none", 429],
        ["allow not-a-bot", path === "/passed" ? "pass" : "hit", 200],
      ]);
      expect(await limited.counted("limited_total")).toEqual(['mode="enforce"} 2']);
      expect(
        limited.edge.decisions.map(({ clientIp, host, verdict }) => ({
          clientIp,
          host,
          ...verdict,
        })),
      ).toEqual(
        Array.from({ length: 2 }, () => ({
          clientIp: ip,
          host: "www.example.com",
          kind: "limit",
          reason: "request-rate",
          bot: null,
          rule: "/**: 1 in 60 s, 1 at once",
        })),
      );
    },
  );

  test("a hit, a miss, a POST and a request that the lane leaves are counted once each", async () => {
    await using limited = await Limited.open(way, [{ path: "/**", rate: 6, per_s: 3_600 }]);
    const asked = [
      await limited.from(ip, "/cached/a"),
      await limited.from(ip, "/cached/a"),
      await limited.from(ip, "/cached/a", { method: "HEAD" }),
      await limited.from(ip, "/cached/b"),
      await limited.from(ip, "/passed", { method: "POST", body: "x" }),
      await limited.from(ip, "/passed"),
      await limited.from(ip, "/passed"),
    ];
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 429]);
    expect(limited.asked).toBe(4);
    await limited.records(7);
  });

  test("HEAD is refused without a body", async () => {
    await using limited = await Limited.open(way, once);
    await limited.from(ip, "/passed");
    const { status, text, headers } = await limited.from(ip, "/passed", { method: "HEAD" });
    expect([status, text, headers["retry-after"]]).toEqual([429, "", "60"]);
  });

  test("each address is counted apart, of IPv6 each /64", async () => {
    await using limited = await Limited.open(way, once);
    expect(await limited.statuses(ip, "/cached/a", 2)).toEqual([200, 429]);
    expect(await limited.statuses("192.0.2.2", "/cached/a", 2)).toEqual([200, 429]);
    expect(await limited.statuses("2001:db8:0:1::1", "/cached/a", 1)).toEqual([200]);
    expect(await limited.statuses("2001:db8:0:1:ffff::2", "/cached/a", 1)).toEqual([429]);
    expect(await limited.statuses("2001:db8:0:2::1", "/cached/a", 1)).toEqual([200]);
    // An IPv4 address that is written as one of IPv6 is the same.
    expect(await limited.statuses("::ffff:192.0.2.2", "/cached/a", 1)).toEqual([429]);
  });

  test("VIP bots are not counted, and who is blocked spends nothing", async () => {
    await using limited = await Limited.open(way, once);
    expect(await limited.statuses("198.51.100.7", "/cached/a", 4)).toEqual([200, 200, 200, 200]);
    expect(await limited.statuses("203.0.113.7", "/cached/a", 3)).toEqual([403, 403, 403]);
    expect(await limited.statuses("203.0.114.7", "/cached/a", 2)).toEqual([200, 429]);
    const verdicts = (await limited.records(9)).map(({ verdict }) => verdict);
    expect(verdicts.slice(-2)).toEqual(["would-block bad-set", "limit request-rate"]);
    expect(await limited.counted("limited_total")).toEqual(['mode="enforce"} 1']);
  });

  test("monitor lets through and counts, and rules behind it are asked as well", async () => {
    const monitored = { path: "/**", rate: 1, per_s: 60, mode: "monitor" as const };
    await using limited = await Limited.open(way, [
      monitored,
      { path: "/passed", rate: 3, per_s: 60 },
    ]);
    expect(await limited.statuses(ip, "/passed", 4)).toEqual([200, 200, 200, 429]);
    expect(await limited.statuses("203.0.114.7", "/cached/a", 2)).toEqual([200, 200]);
    const verdicts = (await limited.records(6)).map(({ verdict }) => verdict);
    expect(verdicts).toEqual([
      "allow not-a-bot",
      "would-limit request-rate",
      "would-limit request-rate",
      "limit request-rate",
      "would-block bad-set",
      "would-block bad-set",
    ]);
    expect((await limited.counted("limited_total")).toSorted()).toEqual([
      'mode="enforce"} 1',
      'mode="monitor"} 3',
    ]);
  });

  test("methods and paths that no rule names are not counted", async () => {
    await using limited = await Limited.open(way, [
      { path: "/login", methods: ["POST"], rate: 1, per_s: 60 },
    ]);
    expect(await limited.statuses(ip, "/login", 3)).toEqual([200, 200, 200]);
    expect(await limited.statuses(ip, "/login", 3, { method: "POST", body: "x" })).toEqual([
      200, 429, 429,
    ]);
    expect(await limited.statuses(ip, "/%6Cogin", 1, { method: "POST", body: "x" })).toEqual([429]);
    expect(await limited.statuses(ip, "/other", 2, { method: "POST", body: "x" })).toEqual([
      200, 200,
    ]);
  });

  test("a document that changes other rules keeps the counts of those that stay, wherever they stand", async () => {
    const rule = { path: "/**", rate: 2, per_s: 3_600 };
    const other = { path: "/other", rate: 9 };
    await using limited = await Limited.open(way, [rule]);
    expect(await limited.statuses(ip, "/cached/a", 1)).toEqual([200]);
    limited.publish([other, rule]);
    expect(await limited.statuses(ip, "/cached/a", 2)).toEqual([200, 429]);
    limited.publish([{ ...rule, mode: "monitor" }]);
    expect(await limited.statuses(ip, "/cached/a", 1)).toEqual([200]);
    limited.publish([rule, other]);
    expect(await limited.statuses(ip, "/cached/a", 1)).toEqual([429]);
    limited.publish([{ ...rule, rate: 3 }]);
    expect(await limited.statuses(ip, "/cached/a", 4)).toEqual([200, 200, 200, 429]);
    limited.publish([]);
    expect(await limited.statuses(ip, "/cached/a", 3)).toEqual([200, 200, 200]);
  });

  test("redirects of the site are counted", async () => {
    await using limited = await Limited.open(way, once, {
      redirects: [{ from: "/old", to: "/cached/a", status: 302 }],
    });
    expect(await limited.statuses(ip, "/old", 2)).toEqual([302, 429]);
  });
});

test("who is sent to HTTPS is not counted before he comes there", async () => {
  await using limited = await Limited.open("lane", once, { tls: { redirect_http: true } });
  const headers = { "x-forwarded-for": ip };
  for (const status of [308, 308])
    expect((await ask(limited.edge, "/cached/a", { headers })).status).toBe(status);
  expect(await limited.statuses(ip, "/cached/a", 2)).toEqual([200, 429]);
});

test("the lane answers hits and refusals itself, and asks no rule of a host that has none", async () => {
  await using limited = await Limited.open("lane", once);
  await limited.from(ip, "/cached/a");
  const { answer, pass } = limited.edge.quick;
  limited.passedMs += 61_000;
  expect(await limited.statuses(ip, "/cached/a", 3)).toEqual([200, 429, 429]);
  expect(limited.edge.quick).toEqual({ answer: answer + 3, pass });
});

test("a WebSocket is counted like every other request", async () => {
  await using limited = await Limited.open("node:http", once);
  await limited.from(ip, "/passed");
  const headers = { "x-forwarded-for": ip, connection: "upgrade", upgrade: "websocket" };
  expect((await ask(limited.edge, "/passed", { headers })).status).toBe(429);
});
