// Bodies on their way: bounded memory, visitors who leave, many at once, pipelining.

import { once } from "node:events";
import { get, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import { ask, host, raw } from "../edge.ts";
import { openStage } from "../stage.ts";

describe("streaming", () => {
  it("50 MB to a slow visitor takes bounded memory", async () => {
    const total = 50 * 2 ** 20;
    let sent = 0;
    function* pieces(): Generator<Buffer> {
      for (; sent < total; sent += 65_536) yield Buffer.alloc(65_536);
    }
    await using s = await openStage((_q, r) => {
      r.writeHead(200, { "Content-Length": total });
      Readable.from(pieces()).pipe(r);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = connect(s.edge.port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n");
    let received = 0;
    socket.once("data", () => socket.pause());
    // Nobody reads: the origin comes to rest after a few MB of kernel and program buffers.
    let before = -1;
    await until("rest", async () => {
      const rested = sent > 0 && sent === before;
      before = sent;
      await new Promise((after) => setTimeout(after, 200));
      return rested;
    });
    expect(sent).toBeLessThan(25 * 2 ** 20);
    socket.on("data", (bytes) => (received += bytes.length));
    socket.once("close", () => resolve());
    socket.resume();
    await promise;
    expect(received).toBeGreaterThan(total - 100_000);
  });

  it("ends at the origin when the visitor leaves", async () => {
    let closed = false;
    await using s = await openStage((_q, r) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" }).write("begin");
      r.once("close", () => (closed = true));
    });
    await raw(s.edge, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n", (text) =>
      text.includes("begin"),
    );
    await until("the origin's request is ended", () => closed);
    await until("the record", () => s.edge.records.length === 1);
    expect(s.edge.records[0]).toMatchObject({ response_status: 499, cache: "miss" });
    expect(s.edge.cache.aborted).toBe(1);
  });

  it.each([
    ["as long as it says", "private, no-store", true],
    ["in chunks", "private, no-store", false],
    ["that is stored", "max-age=60", true],
  ])(
    "%s: a slow visitor gets his own bytes, whatever others are answered meanwhile",
    async (_, control, hasLength) => {
      const piece = (name: string, no: number): Buffer =>
        Buffer.from(`${name} ${no} `.repeat(1_000).slice(0, 8_000));
      const pieces = 1_500; // More than the kernel takes.
      const answer = async (q: IncomingMessage, r: ServerResponse): Promise<void> => {
        const name = (q.url ?? "").slice(1);
        const count = name.startsWith("slow") ? pieces : 1;
        r.writeHead(200, {
          "Cache-Control": control,
          ...(hasLength && { "Content-Length": count * 8_000 }),
        });
        for (let no = 0; no < count; no++) {
          // Piece by piece, so that each is a read of its own.
          if (!r.write(piece(name, no))) await once(r, "drain");
          await turn();
        }
        r.end();
      };
      await using s = await openStage((q, r) => void answer(q, r));
      const slow = Array.from({ length: 3 }, (_each, no) => {
        const request = get({
          port: s.edge.port,
          path: `/slow${no}`,
          headers: { host },
          agent: false,
        });
        return once(request, "response") as Promise<[IncomingMessage]>;
      });
      const responses = await Promise.all(slow);
      for (let no = 0; no < 60; no++) {
        const { text } = await ask(s.edge, `/fast${no}`);
        expect(text).toBe(String(piece(`fast${no}`, 0)));
      }
      for (const [no, [response]] of responses.entries()) {
        const parts: Buffer[] = [];
        for await (const part of response) parts.push(part as Buffer); // No encoding is set.
        const expected = Array.from({ length: pieces }, (_each, at) => piece(`slow${no}`, at));
        expect(Buffer.concat(parts).equals(Buffer.concat(expected))).toBe(true);
      }
    },
  );

  it("of ten visitors at once", async () => {
    await using s = await openStage((q, r) => void r.end((q.url ?? "").repeat(20_000)));
    const paths = Array.from({ length: 10 }, (_, n) => `/visitor-${n}`);
    const answers = await Promise.all(paths.map(async (path) => ask(s.edge, path)));
    expect(answers.map(({ text }, n) => text === (paths[n] ?? "").repeat(20_000))).toEqual(
      paths.map(() => true),
    );
  });

  it("of pipelined requests keeps their order", async () => {
    await using s = await openStage((q, r) => {
      if (q.url === "/slow")
        void turn()
          .then(turn)
          .then(() => setTimeout(() => r.end("[slow]"), 50));
      else r.end(`[${q.url}]`);
    });
    const request = (path: string, more = ""): string =>
      `GET ${path} HTTP/1.1\r\nHost: www.example.com\r\n${more}\r\n`;
    const answer = await raw(
      s.edge,
      request("/slow") + request("/b") + request("/c", "Connection: close\r\n"),
    );
    expect(answer.match(/\[[^\]]*\]/g)).toEqual(["[slow]", "[/b]", "[/c]"]);
  });

  it("to visitors who leave at any moment harms nobody else", async () => {
    await using s = await openStage((_q, r) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" });
      Readable.from(["a".repeat(100_000), "b".repeat(100_000), "c".repeat(100_000)]).pipe(r);
    });
    const head = "POST /p HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 300000\r\n\r\n";
    const visits = Array.from({ length: 60 }, async (_, n) => {
      const socket = connect(s.edge.port, "127.0.0.1");
      const closed = once(socket, "close");
      socket.on("error", () => {});
      if (n % 2 === 0)
        socket.write(`GET /${n} HTTP/1.1\r\nHost: www.example.com\r\n\r\n`.repeat(3));
      else socket.write(head + "x".repeat(n * 1_000));
      for (let turns = 0; turns < n; turns++) await turn();
      if (n % 3 === 0) socket.resetAndDestroy();
      else if (n % 3 === 1) socket.destroy();
      else
        socket
          .once("data", () => socket.destroy())
          .once("end", () => socket.destroy())
          .end();
      await closed;
    });
    await Promise.all(visits);
    expect((await ask(s.edge, "/after")).body.length).toBe(300_000);
  });
});
