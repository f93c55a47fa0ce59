// A listener that outlives what it serves: nobody is refused between two lives, and what was under way ends as in a stop.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { KeptListener, type Served, type ServedEnd } from "../../src/base/kept-listener.ts";

const times = { graceMs: 5_000, drainMs: 1_000, keptMs: 1_000, lastMs: () => 60_000 };
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
      isSlow ? { graceMs: 20, drainMs: 20, keptMs: 20, lastMs: () => 20 } : times,
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

/** A life that answers `/` when it is told to, and says `quick` to others. */
async function slowLife(door: KeptListener, end: Partial<ServedEnd>) {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const life = await door.serve(
    where,
    {
      ...saying(""),
      request: (request, response) => {
        if (request.url === "/quick") response.end("quick");
        else {
          begun.resolve();
          void ended.promise.then((text) => response.end(text));
        }
      },
    },
    { ...times, ...end },
  );
  const answer = ask(life.port);
  await begun.promise;
  const quick = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${life.port}/quick`)).text();
  return { life, answer, quick, say: (text: string) => ended.resolve(text) };
}

test("the last end listens and answers for as long as an answer is under way, however long a passing one would", async () => {
  await using door = new KeptListener(between);
  const { life, answer, quick, say } = await slowLife(door, { drainMs: 0, graceMs: 0 });
  const over = life[Symbol.asyncDispose]();
  for (let count = 0; count < 20; count++) expect(await quick()).toBe("quick");
  say("whole");
  expect(await answer).toBe("whole");
  await over;
  await expect(quick()).rejects.toThrow();
});

test("what is under way when its time is up is told so, and its answer still goes out", async () => {
  for (const isKept of [false, true]) {
    await using door = new KeptListener(between);
    const none = { drainMs: 0, keptMs: 10, lastMs: () => 10 };
    const late = Promise.withResolvers<void>();
    const { life, answer, say } = await slowLife(door, { ...none, onLate: () => late.resolve() });
    if (isKept) door.keep();
    const over = life[Symbol.asyncDispose]();
    await late.promise;
    say("too late");
    expect(await answer).toBe("too late");
    await over;
  }
});
