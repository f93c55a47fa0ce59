// One fetch for many visitors: joined while nothing was cleared, streamed at each one's pace, never another's private answer, never lost
// with the visitor who began it.

import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import { ask, raw, type Answer } from "../edge.ts";
import { openStage } from "../stage.ts";

const lasting = { "Cache-Control": "max-age=60" };

/** Holds every response until the test answers it. */
async function openHeld(cache?: Parameters<typeof openStage>[1]) {
  const held: ServerResponse[] = [];
  const stage = await openStage((_q, r) => void held.push(r), cache);
  const next = async (n: number): Promise<ServerResponse> => until("asked", () => held[n]);
  return { stage, held, next };
}

const statusOf = ({ headers }: Answer): string | undefined => headers["cache-status"];

describe("a fetch in flight", () => {
  it("is shared by all who come before its answer, and by who comes during it", async () => {
    const { stage, held, next } = await openHeld();
    await using s = stage;
    const early = Array.from({ length: 20 }, async () => ask(s.edge, "/a"));
    const response = await next(0);
    await s.letIn(20);
    response.writeHead(200, { ...lasting, "Content-Length": 6 }).write("abc");
    const late = ask(s.edge, "/a");
    await s.letIn(21);
    response.end("def");
    const answers = await Promise.all([...early, late]);
    expect(answers.map(({ text }) => text)).toEqual(answers.map(() => "abcdef"));
    expect(held.length).toBe(1);
    const collapsed = answers.filter((one) => statusOf(one)?.endsWith("fwd=uri-miss; collapsed"));
    expect(collapsed.length).toBe(20);
    expect(await s.edge.registry.metrics()).toContain(
      'accel_agent_cache_collapsed_total{domain="www.example.com"} 20',
    );
  });

  it("that takes longer than ten seconds is not waited for: who has joined it asks alone", async () => {
    const { stage, next } = await openHeld();
    await using s = stage;
    const [before, after] = [ask(s.edge, "/a"), ask(s.edge, "/a")];
    await s.letIn(2);
    const first = await next(0);
    (await next(1)).writeHead(200, lasting).end("alone");
    expect(await Promise.race([before, after])).toMatchObject({ text: "alone" });
    first.writeHead(200, lasting).end("slow");
    const texts = (await Promise.all([before, after])).map(({ text }) => text);
    expect(texts.toSorted()).toEqual(["alone", "slow"]);
  }, 30_000);

  it("is not joined after a clear", async () => {
    const { stage, next } = await openHeld();
    await using s = stage;
    const before = ask(s.edge, "/a");
    const first = await next(0);
    s.edge.cache.clear(() => true);
    const after = ask(s.edge, "/a");
    (await next(1)).writeHead(200, lasting).end("new");
    expect((await after).text).toBe("new");
    first.writeHead(200, lasting).end("old");
    expect((await before).text).toBe("old");
    expect(await s.get("/a")).toBe("200 new hit");
  });

  it("is joined whatever others POST to other URLs, and not after a POST to its own", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage((q, r) => {
      if (q.method === "POST") r.writeHead(204).end();
      else held.push(r);
    });
    const next = async (n: number) => until("asked", () => held[n]);
    const first = ask(s.edge, "/a");
    const before = await next(0);
    expect((await ask(s.edge, "/beacon", { method: "POST", body: "x" })).status).toBe(204);
    const joined = ask(s.edge, "/a");
    await s.letIn(3);
    await ask(s.edge, "/a", { method: "POST", body: "x" });
    const after = ask(s.edge, "/a");
    (await next(1)).writeHead(200, lasting).end("new");
    expect((await after).text).toBe("new");
    before.writeHead(200, lasting).end("old");
    expect([(await first).text, (await joined).text]).toEqual(["old", "old"]);
    expect(held.length).toBe(2);
    expect(await s.get("/a")).toBe("200 new hit");
  });

  it.each<[string, number, Record<string, string>]>([
    ["private", 200, { "Cache-Control": "private, max-age=60" }],
    ["no-store", 200, { "Cache-Control": "no-store" }],
    ["with a cookie", 200, { "Cache-Control": "max-age=60", "Set-Cookie": "a=b" }],
    ["to be revalidated", 200, { "Cache-Control": "no-cache", ETag: '"e"' }],
  ])("is not shared where its answer is %s", async (_name, status, headers) => {
    let asked = 0;
    await using s = await openStage((_q, r) => {
      const own = ++asked;
      setTimeout(() => r.writeHead(status, headers).end(`for ${own} only`), 50);
    });
    const answers = await Promise.all(Array.from({ length: 5 }, async () => ask(s.edge, "/a")));
    expect(answers.map(({ text }) => text).sort()).toEqual(
      [1, 2, 3, 4, 5].map((n) => `for ${n} only`),
    );
  });

  it("is shared among those whose fields select the same", async () => {
    const { promise: allAsk, resolve } = Promise.withResolvers<void>();
    await using s = await openStage((q, r) => {
      const language = q.headers["accept-language"];
      const answer = (): unknown =>
        r.writeHead(200, { ...lasting, Vary: "Accept-Language" }).end(language);
      void allAsk.then(answer);
    });
    const get = async (language: string): Promise<string> =>
      (await ask(s.edge, "/a", { headers: { "accept-language": language } })).text;
    const languages = ["de", "en", "de", "en", "de"];
    const answers = Promise.all(languages.map(get));
    await s.letIn(languages.length);
    resolve();
    expect(await answers).toEqual(languages);
    expect(s.seen.length).toBeLessThan(5);
  });

  it("goes on for the others when the visitor who began it leaves", async () => {
    const { stage, held, next } = await openHeld();
    await using s = stage;
    const socket = connect(s.edge.port, "127.0.0.1");
    socket.write("GET /a HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
    const response = await next(0);
    const other = ask(s.edge, "/a");
    await s.letIn(2);
    socket.destroy();
    await until("one has left", () => s.edge.openConnections === 1);
    response.writeHead(200, lasting).end("here");
    expect((await other).text).toBe("here");
    expect(held.length).toBe(1);
  });

  it("is finished for the store when all have left and its length is known", async () => {
    const { stage, next } = await openHeld();
    await using s = stage;
    const left = raw(s.edge, "GET /a HTTP/1.1\r\nHost: www.example.com\r\n\r\n", (text) =>
      text.includes("abc"),
    );
    const response = await next(0);
    response.writeHead(200, { ...lasting, "Content-Length": 6 }).write("abc");
    await left;
    await until("he has left", () => s.edge.openConnections === 0);
    response.end("def");
    await until("the entry", () => s.edge.cache.entries.length === 1);
    expect(await s.get("/a")).toBe("200 abcdef hit");
  });

  it("that fails fails for all who wait, and is asked anew by the next", async () => {
    const { stage, held, next } = await openHeld();
    await using s = stage;
    const answers = Promise.all(Array.from({ length: 4 }, async () => ask(s.edge, "/a")));
    const response = await next(0);
    await s.letIn(4);
    response.destroy();
    expect((await answers).map(({ status }) => status)).toEqual([502, 502, 502, 502]);
    expect(held.length).toBe(1);
    const again = ask(s.edge, "/a");
    (await next(1)).writeHead(200, lasting).end("well");
    expect((await again).text).toBe("well");
  });

  it("is not held up by a slow reader, who gets the rest from the store", async () => {
    const piece = Buffer.alloc(64 * 1024, "x");
    const total = 40 * 2 ** 20;
    const { stage, next } = await openHeld();
    await using s = stage;
    const slow = connect(s.edge.port, "127.0.0.1");
    slow.pause();
    slow.write("GET /a HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n");
    const response = await next(0);
    const fast = ask(s.edge, "/a");
    await s.letIn(2);
    response.writeHead(200, { ...lasting, "Content-Length": total });
    void (async () => {
      for (let sent = 0; sent < total; sent += piece.length)
        if (!response.write(piece)) await new Promise((drained) => response.once("drain", drained));
      response.end();
    })();
    expect((await fast).body.length).toBe(total);
    let received = 0;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    slow.on("data", (bytes) => (received += bytes.length)).once("close", () => resolve());
    slow.resume();
    await closed;
    expect(received).toBeGreaterThan(total);
    expect(s.edge.cache.awaited).toEqual([true]);
    expect(s.seen.length).toBe(1);
  });
});
