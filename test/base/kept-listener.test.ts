// A listener that outlives what it serves: nobody is refused between two lives, and what was under way ends as in a stop.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { KeptListener, type Served } from "../../src/base/kept-listener.ts";

const times = { graceMs: 5_000, drainMs: 1_000 };
const where = { host: "127.0.0.1", port: 0 };

const saying = (text: string): Served => ({
  request: (_, response) => void response.end(text),
  upgrade: (_, socket) => void socket.end(`HTTP/1.1 503 ${text}\r\nconnection: close\r\n\r\n`),
});

const between: Served = {
  ...saying("between"),
  request: (_, response) => {
    response.shouldKeepAlive = false;
    response.end("between");
  },
};

async function ask(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
  return answer.text();
}

/** All that comes on a connection until it ends. */
async function said(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await once(socket, "end");
  socket.destroy();
  return text;
}

test("where it is kept, who comes between two lives is answered, at the same port; else it ends with the first", async () => {
  await using door = new KeptListener(between);
  const first = await door.serve(where, saying("first"), times);
  const { port } = first;
  expect(await ask(port)).toBe("first");
  door.keep();
  await first[Symbol.asyncDispose]();
  expect(await ask(port)).toBe("between");
  const upgrade = connect(port, "127.0.0.1");
  upgrade.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  expect(await said(upgrade)).toMatch(/^HTTP\/1\.1 503 between/);
  const second = await door.serve(where, saying("second"), times);
  expect([second.port, await ask(port)]).toEqual([port, "second"]);
  await second[Symbol.asyncDispose]();
  await expect(ask(port)).rejects.toThrow();
});

test("the end of a life waits for the answer that is under way, closes idle connections, and cuts what takes longer than the grace", async () => {
  for (const isSlow of [false, true]) {
    await using door = new KeptListener(between);
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const life = await door.serve(
      where,
      {
        ...saying(""),
        request: (request, response) => {
          if (request.url === "/idle") response.end("idle");
          else {
            begun.resolve();
            void ended.promise.then(() => response.end("whole"));
          }
        },
      },
      isSlow ? { graceMs: 20, drainMs: 20 } : times,
    );
    const idle = connect(life.port, "127.0.0.1");
    idle.write("GET /idle HTTP/1.1\r\nhost: x\r\n\r\n");
    const busy = connect(life.port, "127.0.0.1").on("error", () => undefined);
    busy.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const [idleSaid, busySaid] = [
      said(idle),
      isSlow ? once(busy, "close").then(() => "cut") : said(busy),
    ];
    await begun.promise;
    door.keep();
    const over = life[Symbol.asyncDispose]();
    if (!isSlow) ended.resolve();
    await over;
    expect(await idleSaid).toMatch(/idle$/);
    expect(await busySaid).toMatch(isSlow ? /^cut$/ : /connection: close[^]*whole$/i);
    expect(await ask(life.port)).toBe("between");
    ended.resolve();
  }
});
