// HTTP/2: how a stream ends, its record, and how a connection does when the worker drains.

import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { describe, expect, test } from "vitest";
import { decodeRequestRecord } from "../../../../src/wire/request-log.ts";
import { until } from "../../../support/until.ts";
import { host } from "../edge.ts";
import { visitByHttp2, type Http2Visitor } from "../secure-clients.ts";
import { openSecure, openSecureStage } from "../secure-stage.ts";

describe("a record", () => {
  test("tells of a stream what it tells of a request", async () => {
    await using s = await openSecureStage((_request, response) => response.end("hello"));
    await using visitor = await visitByHttp2(s.port);
    const headers = { "user-agent": "Mozilla/5.0", cookie: "secret" };
    await visitor.ask("/a%20b?q=1", { headers });
    await visitor.ask("/", { method: "HEAD" });
    const records = await until("records", () => s.edge.records.length === 2 && s.edge.records);
    for (const record of records) expect(decodeRequestRecord(record)).toMatchObject({ ok: true });
    expect(records[0]).toMatchObject({
      connection: 1,
      response_status: 200,
      request_method: "GET",
      uri_path: "/a%20b?q=1",
      authority: host,
      domain: host,
      client_ip: "127.0.0.1",
      cache: "pass",
      verdict: "allow not-a-bot",
      user_agent: "Mozilla/5.0",
    });
    expect(records[1]).toMatchObject({ connection: 1, request_method: "HEAD" });
    expect(records[0]?.bytes_sent).toBeGreaterThan(100);
    expect(records[0]?.bytes_sent).toBeLessThan(1_000);
    expect(records[1]?.bytes_sent).toBeLessThan(records[0]?.bytes_sent ?? 0);
  });

  test("of a request with a body is that of its answer, whichever ends first", async () => {
    await using s = await openSecureStage((request, response) => {
      if (request.url === "/early") response.end("early");
      else request.resume().on("end", () => response.end("hello"));
    });
    await using visitor = await visitByHttp2(s.port);
    for (const [path, method, bytes] of [
      ["/", "POST", 5],
      ["/", "PUT", 100_000],
      ["/early", "POST", 5],
      ["/", "POST", 0],
    ] as const)
      await visitor.ask(path, { method, body: Buffer.alloc(bytes, "x") });
    const records = await until("records", () => s.edge.records.length === 4 && s.edge.records);
    expect(records.map((one) => one.response_status)).toEqual([200, 200, 200, 200]);
    expect(records.map((one) => one.bytes_sent > 100)).toEqual([true, true, true, true]);
  });

  test.each([
    ["leaves", (visitor: Http2Visitor) => visitor.session.destroy()],
    ["takes the request back", (_: Http2Visitor, stream: ClientHttp2Stream) => stream.close(8)],
    ["is cut at the end of a drain", (_: Http2Visitor, __: unknown, drain: () => void) => drain()],
  ])("of a request with a body whose visitor %s is 499", async (_what, end) => {
    const body = Buffer.alloc(4 * 2 ** 20, "x"); // More than a stream may have on its way.
    await using s = await openSecureStage((request, response) => {
      request.resume().on("end", () => response.end(body));
    });
    await using visitor = await visitByHttp2(s.port);
    const stream = visitor.begin({ ":path": "/", ":method": "POST" }, false);
    stream.end("hello");
    await once(stream, "response");
    end(visitor, stream, () => void s.edge.drain(100));
    const [record] = await until("the record", () => s.edge.records.length === 1 && s.edge.records);
    expect(record).toMatchObject({ request_method: "POST", response_status: 499 });
    expect(record?.bytes_sent).toBeLessThan(body.length);
  });

  test("of a visitor who leaves is 499, and the origin is let go", async () => {
    let closed = false;
    await using s = await openSecureStage((_request, response) => {
      response.writeHead(200, { "Cache-Control": "max-age=60" }).write("begin");
      response.once("close", () => (closed = true));
    });
    await using visitor = await visitByHttp2(s.port);
    const stream = visitor.begin({ ":path": "/" });
    await once(stream, "data");
    stream.close(8);
    await until("the origin's request is ended", () => closed);
    const [record] = await until("the record", () => s.edge.records.length === 1 && s.edge.records);
    expect(record?.response_status).toBe(499);
    expect((await visitor.ask("/", { method: "OPTIONS", host: "other.example.com" })).status).toBe(
      421,
    );
  });

  test("tells of a blocked visitor", async () => {
    const judge = () => ({ kind: "block", reason: "bad-set", bot: "Bad" }) as const;
    await using s = await openSecure({ judge });
    await using visitor = await visitByHttp2(s.port);
    const answer = await visitor.ask("/");
    expect(answer.status).toBe(403);
    expect(answer.headers["x-accel-decision"]).toBe("0123456789abcdef");
    const [record] = await until("the record", () => s.edge.records.length === 1 && s.edge.records);
    expect(record).toMatchObject({ cache: "blocked", verdict: "block bad-set", bot: "Bad" });
  });
});

describe("draining", () => {
  test("answers what is under way and what was on its way, then says good-bye", async () => {
    let finish = (): void => {};
    await using s = await openSecureStage((request, response) => {
      if (request.url === "/slow") finish = () => void response.end("slow");
      else response.end("late");
    });
    await using visitor = await visitByHttp2(s.port);
    const slow = visitor.ask("/slow");
    await until("the origin is asked", () => finish.name === "finish");
    const told = once(visitor.session, "goaway");
    const drained = s.edge.drain(10_000);
    // Sent before the visitor can know.
    const late = visitor.ask("/late");
    await told;
    expect((await late).text).toBe("late");
    finish();
    expect((await slow).text).toBe("slow");
    await drained;
    expect(s.edge.records.map(({ response_status: status }) => status)).toEqual([200, 200]);
  });

  test("tells a new connection behind its first request", async () => {
    await using s = await openSecureStage((_request, response) => response.end("hello"));
    await using before = await visitByHttp2(s.port);
    await using within = await visitByHttp2(s.port);
    await using used = await visitByHttp2(s.port);
    await used.ask("/");
    await until("all are there", () => s.edge.openConnections === 3);
    const isTold = { before: false, within: false, used: false };
    for (const [name, { session }] of Object.entries({ before, within, used }))
      session.once("goaway", () => (isTold[name as keyof typeof isTold] = true));
    const drained = s.edge.drain(10_000);
    await until("who has asked is told", () => isTold.used);
    expect(isTold).toEqual({ before: false, within: false, used: true });
    expect((await before.ask("/")).text).toBe("hello");
    await until("the other one is told then", () => isTold.before);
    expect((await within.ask("/")).text).toBe("hello");
    await drained;
    expect(s.edge.records.map(({ response_status: status }) => status)).toEqual([200, 200, 200]);
  });

  test("behind a finish tells a connection with a request under way to go, which was answered all that while, first with a notice", async () => {
    const slow = Promise.withResolvers<() => void>();
    await using s = await openSecureStage((request, response) => {
      if (request.url === "/slow") slow.resolve(() => void response.end("slow"));
      else response.end("hello");
    });
    await using visitor = await visitByHttp2(s.port);
    const answered = visitor.ask("/slow");
    const answer = await slow.promise;
    const named: unknown[] = [];
    visitor.session.on("goaway", (_code, last) => named.push(last));
    const finished = s.edge.finish(60_000);
    for (let asked = 0; asked < 3; asked++) expect((await visitor.ask("/")).text).toBe("hello");
    expect(named).toEqual([]);
    const drained = s.edge.drain(60_000);
    await until("it is told for good, behind a notice", () => named.length >= 2);
    expect(named.slice(0, 2)).toEqual([2 ** 31 - 1, 7]);
    answer();
    expect((await answered).text).toBe("slow");
    await Promise.all([finished, drained]);
  });

  test("gives a shorter notice behind a finish, for visitors wait for its end", async () => {
    await using s = await openSecureStage((_request, response) => response.end("hello"), {
      http2: { noticeMs: 600_000, shortNoticeMs: 50 },
    });
    await using visitor = await visitByHttp2(s.port);
    await visitor.ask("/");
    await s.edge.finish(0);
    await s.edge.drain(60_000);
    expect(s.edge.openConnections).toBe(0);
  });

  test("ends idle connections at once, and cuts the rest after its grace", async () => {
    await using s = await openSecureStage(() => {});
    await using idle = await visitByHttp2(s.port);
    await using stuck = await visitByHttp2(s.port);
    const never = stuck.ask("/");
    const outcome = expect(never).rejects.toThrow();
    await until("both are there", () => s.edge.openConnections === 2);
    const ended = once(idle.session, "close");
    const drained = s.edge.drain(800);
    await ended;
    await drained;
    await outcome;
    expect(s.edge.openConnections).toBe(0);
  });
});
