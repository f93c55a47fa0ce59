// The client for origins without TLS, with real connections: what is kept and used again, what is asked once more, and how a body keeps to its taker's pace.

import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { piecesOf } from "../../../../src/agent/accelerator/origin/origin-body.ts";
import { PlainPool } from "../../../../src/agent/accelerator/origin/plain-pool.ts";
import { requestHead } from "../../../../src/agent/accelerator/origin/request-head.ts";
import type {
  WireAnswer,
  WireEvents,
  WireRequest,
} from "../../../../src/agent/accelerator/origin/wire-request.ts";
import { until } from "../../../support/until.ts";

const ok = (body: string, ...lines: readonly string[]): string =>
  ["HTTP/1.1 200 OK", `Content-Length: ${body.length}`, ...lines, "", body].join("\r\n");

type Handler = (socket: Socket, request: string, no: number) => void;

/** An origin that is told each request as text, with the number of its connection. */
async function open(handler: Handler) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const no = sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => handler(socket, chunk.toString("latin1"), no));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const time = { ms: 0 };
  const pool = new PlainPool({
    origin: new URL(`http://127.0.0.1:${port}`),
    connectMs: 5_000,
    connectionsMax: 8,
    guard: { ownListeners: [] },
    steadyMs: () => time.ms,
  });
  let over = 0;
  const askWith = (changes: Partial<WireRequest>, events: WireEvents): void =>
    pool.ask(
      {
        method: "GET",
        path: "/",
        fields: [["Host", "a.example"]],
        body: undefined,
        stop: new AbortController().signal,
        onInterim: undefined,
        headMs: 5_000,
        silenceMs: 5_000,
        ...changes,
      },
      events,
    );
  const ask = (changes: Partial<WireRequest> = {}): Promise<WireAnswer> => {
    const { promise, resolve, reject } = Promise.withResolvers<WireAnswer>();
    askWith(changes, { onAnswer: resolve, onFailure: reject, onOver: () => over++ });
    return promise;
  };
  return {
    sockets,
    time,
    pool,
    ask,
    askWith,
    textOf: async (changes?: Partial<WireRequest>) => textOf(await ask(changes)),
    over: () => over,
    [Symbol.asyncDispose]: async () => {
      await pool.destroy();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function textOf({ body }: WireAnswer): Promise<string> {
  let text = "";
  for await (const piece of piecesOf(body)) text += Buffer.from(piece).toString("latin1");
  return text;
}

async function* bodyOf(...pieces: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

describe("a connection", () => {
  test("is used again, by one request at a time", async () => {
    await using origin = await open((socket, _text, no) => socket.write(ok(`${no}`)));
    expect(await origin.textOf()).toBe("1");
    expect(await origin.textOf()).toBe("1");
    const both = await Promise.all([origin.textOf(), origin.textOf()]);
    expect(both.toSorted()).toEqual(["1", "2"]);
    expect(origin.over()).toBe(4);
  });

  test("is kept for four seconds, or as long as the origin says, less the way", async () => {
    const said: string[] = ["X: y", "Keep-Alive: timeout=60"];
    await using origin = await open((socket, _text, no) =>
      socket.write(ok(`${no}`, said.shift() ?? "Keep-Alive: timeout=2")),
    );
    expect(await origin.textOf()).toBe("1");
    origin.time.ms += 4_000;
    expect(await origin.textOf()).toBe("2");
    origin.time.ms += 57_999;
    expect(await origin.textOf()).toBe("2"); // Which says now that it stays for two seconds.
    expect(await origin.textOf()).toBe("3");
  });

  test("is not used again after HEAD", async () => {
    await using origin = await open((socket, text, no) =>
      socket.write(text.startsWith("HEAD") ? ok(`${no}`).slice(0, -1) : ok(`${no}`)),
    );
    expect(await origin.textOf({ method: "HEAD" })).toBe("");
    expect(await origin.textOf()).toBe("2");
  });

  test("on which a byte comes that nobody asked for is closed", async () => {
    await using origin = await open((socket, _text, no) => socket.write(ok(`${no}`)));
    expect(await origin.textOf()).toBe("1");
    const [first] = origin.sockets;
    first?.write("HTTP/1.1 200 OK\r\n\r\n");
    await until("it is closed", async () => Promise.resolve(first?.destroyed === true));
    expect(await origin.textOf()).toBe("2");
  });

  test("that the origin closes while it is idle is not used again", async () => {
    await using origin = await open((socket, _text, no) => socket.write(ok(`${no}`)));
    expect(await origin.textOf()).toBe("1");
    const [first] = origin.sockets;
    first?.end();
    await until("it is closed", async () => Promise.resolve(first?.destroyed === true));
    expect(await origin.textOf()).toBe("2");
  });
});

describe("a kept connection that ends as it is asked", () => {
  const endsSecond: Handler = (socket, _text, no) => {
    if (no === 1 && socket.bytesRead > 100) socket.destroy();
    else socket.write(ok(`${no}`));
  };
  const long = "/".padEnd(80, "a");

  test("is asked for by another", async () => {
    await using origin = await open(endsSecond);
    expect(await origin.textOf()).toBe("1");
    expect(await origin.textOf({ path: long })).toBe("2");
    expect(origin.over()).toBe(2);
  });

  test("not where the request has a body, or may not be repeated", async () => {
    for (const changes of [
      { method: "POST", path: long },
      { method: "PUT", path: long, body: () => bodyOf("x") },
    ]) {
      await using origin = await open(endsSecond);
      expect(await origin.textOf()).toBe("1");
      await expect(origin.ask(changes)).rejects.toThrow();
      expect(origin.sockets).toHaveLength(1);
      expect(origin.over()).toBe(2);
    }
  });

  test("nor where an answer had begun", async () => {
    await using origin = await open((socket, _text, no) => {
      if (socket.bytesRead < 100) socket.write(ok(`${no}`));
      else socket.end("HTTP/1.1 200 O");
    });
    expect(await origin.textOf()).toBe("1");
    await expect(origin.ask({ path: long })).rejects.toThrow("the origin closed the connection");
    expect(origin.sockets).toHaveLength(1);
  });

  test("nor a new one", async () => {
    await using origin = await open((socket) => void socket.destroy());
    await expect(origin.ask()).rejects.toThrow();
    expect(origin.sockets).toHaveLength(1);
    expect(origin.over()).toBe(1);
  });
});

describe("a body of a request", () => {
  test("goes with its length, or in chunks", async () => {
    let seen = "";
    await using origin = await open((socket, text) => {
      seen += text;
      if (seen.endsWith("\r\n0\r\n\r\n") || seen.endsWith("hello")) socket.write(ok("done"));
    });
    const fields = [["Host", "a.example"], ["Content-Length", "5"]] as const; // prettier-ignore
    const stated = { method: "POST", fields, body: () => bodyOf("he", "", "llo") };
    expect(await origin.textOf(stated)).toBe("done");
    expect(seen).toMatch(/\r\nContent-Length: 5\r\n\r\nhello$/);
    seen = "";
    expect(await origin.textOf({ method: "PUT", body: () => bodyOf("he", "llo") })).toBe("done");
    expect(seen).toMatch(/\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n$/);
    expect(origin.sockets).toHaveLength(1);
  });

  test("that is at hand goes with its head, and once more where that is harmless", async () => {
    const seen: string[] = [];
    await using origin = await open((socket, text) => {
      seen.push(text);
      // The connection that answered before ends as it is asked again.
      if (seen.length === 2) socket.destroy();
      else socket.write(ok("done"));
    });
    const fields = [["Host", "a.example"], ["Content-Length", "5"]] as const; // prettier-ignore
    const body = Buffer.from("he\u00ffo", "latin1");
    const fitting = [fields[0], ["Content-Length", "4"]] as const;
    expect(await origin.textOf({ method: "POST", fields: fitting, body })).toBe("done");
    expect(await origin.textOf({ method: "PUT", fields: fitting, body })).toBe("done");
    expect(seen).toHaveLength(3);
    for (const text of seen) expect(text).toMatch(/\r\nContent-Length: 4\r\n\r\nhe\u00ffo$/);
    expect(await origin.textOf({ method: "POST", body })).toBe("done");
    expect(seen[3]).toMatch(/chunked\r\n\r\n4\r\nhe\u00ffo\r\n0\r\n\r\n$/);
    await expect(origin.ask({ method: "POST", fields, body })).rejects.toThrow(/than stated/);
  });

  test.each(["hell", "hello!"])("of another length than stated breaks: %s", async (text) => {
    await using origin = await open(() => {});
    const fields = [["Host", "a.example"], ["Content-Length", "5"]] as const; // prettier-ignore
    const asked = origin.ask({ method: "POST", fields, body: () => bodyOf(text) });
    await expect(asked).rejects.toThrow(/than stated/);
  });

  test("whose answer comes before its end is not waited for, and the connection goes", async () => {
    await using origin = await open((socket) => socket.write(ok("enough")));
    const never = Promise.withResolvers<void>();
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a");
      await never.promise;
    }
    expect(await origin.textOf({ method: "POST", body: slow })).toBe("enough");
    const [first] = origin.sockets;
    await until("it is closed", async () => Promise.resolve(first?.destroyed === true));
    never.resolve();
  });
});

describe("the body of an answer", () => {
  test("waits for its taker, in bounded memory", async () => {
    const size = 64 * 2 ** 20;
    await using origin = await open((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      const piece = Buffer.alloc(65_536);
      const go = (): void => {
        while (socket.bytesWritten < size && socket.write(piece));
      };
      socket.on("drain", go);
      go();
    });
    const { body } = await origin.ask();
    let [received, hasRoom] = [0, false];
    const { promise: complete, resolve, reject } = Promise.withResolvers<void>();
    body.flow({
      piece: (bytes) => {
        received += bytes.length;
        return hasRoom;
      },
      end: resolve,
      fail: reject,
    });
    await until("there is one piece", async () => Promise.resolve(received > 0));
    const socket = origin.sockets[0];
    // The kernel's buffers fill, and nothing more is taken.
    await until("the origin waits", async () => Promise.resolve((socket?.writableLength ?? 0) > 0));
    expect(received).toBeLessThanOrEqual(65_536);
    hasRoom = true;
    body.resume();
    await complete;
    expect(received).toBe(size);
  });

  test("breaks when the visitor leaves, and so does the wait for it", async () => {
    await using origin = await open((socket, text) => {
      if (text.includes("/begun")) socket.write(ok("half").slice(0, -2));
    });
    for (const path of ["/begun", "/silent"]) {
      const stop = new AbortController();
      const asked = origin.ask({ path, stop: stop.signal });
      if (path === "/begun") {
        const rest = textOf(await asked);
        stop.abort(new Error("gone"));
        await expect(rest).rejects.toThrow("gone");
      } else {
        await until("it is asked", async () => Promise.resolve(origin.sockets.length === 2));
        stop.abort(new Error("gone"));
        await expect(asked).rejects.toThrow("gone");
      }
    }
    await until("the connections are closed", async () =>
      Promise.resolve(origin.sockets.every(({ destroyed }) => destroyed)),
    );
    expect(origin.over()).toBe(2);
  });

  test("that is discarded frees its connection; one that was complete keeps it", async () => {
    await using origin = await open((socket, text, no) =>
      socket.write(text.includes("/long") ? ok("half").slice(0, -2) : ok(`${no}`)),
    );
    (await origin.ask()).body.discard();
    expect(await origin.textOf()).toBe("1");
    (await origin.ask({ path: "/long" })).body.discard();
    expect(await origin.textOf()).toBe("2");
  });

  test("that came with its head may be discarded in that step: the connection is used again", async () => {
    await using origin = await open((socket, text, no) =>
      socket.write(text.includes("/half") ? ok(`${no}`, "X: y").slice(0, -1) : ok(`${no}`)),
    );
    const discard = async (path: string): Promise<void> => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAnswer = ({ body }: WireAnswer): void => (body.discard(), resolve());
      origin.askWith({ path }, { onAnswer, onFailure: reject, onOver: () => {} });
      await promise;
    };
    await discard("/whole");
    expect(await origin.textOf()).toBe("1");
    await discard("/half");
    expect(await origin.textOf()).toBe("2");
  });

  test("is told in the step of its head, and stays as it was where it waits for its taker", async () => {
    // Its end comes when others have been read into the same memory.
    await using origin = await open((socket, text) => {
      const [, letter = "?"] = /^GET \/(.) /.exec(text) ?? [];
      socket.write(ok(letter.repeat(8_000)).slice(0, -1));
      setImmediate(() => socket.write(letter));
    });
    const asked = await Promise.all(
      ["a", "b", "c", "d", "e", "f", "g", "h"].map(async (one) => origin.ask({ path: `/${one}` })),
    );
    for (const [no, one] of asked.entries())
      expect(await textOf(one)).toBe("abcdefgh".charAt(no).repeat(8_000));
  });

  test("that falls silent breaks, and so does a head that does not come", async () => {
    await using origin = await open((socket, text) => {
      if (text.includes("/begun")) socket.write(ok("half").slice(0, -2));
    });
    await expect(origin.ask({ headMs: 50 })).rejects.toMatchObject({
      code: "ERR_ORIGIN_HEAD_TIMEOUT",
    });
    const begun = await origin.ask({ path: "/begun", silenceMs: 50 });
    await expect(textOf(begun)).rejects.toMatchObject({ code: "ERR_ORIGIN_BODY_TIMEOUT" });
  });
});

describe("the head of a request", () => {
  test.each<[string, () => unknown]>([
    ["a line end in a value", () => requestHead("GET", "/", [["X", "a\r\nY: b"]], false)],
    ["a line end in a name", () => requestHead("GET", "/", [["X\r\nY", "a"]], false)],
    ["a colon in a name", () => requestHead("GET", "/", [["X:", "a"]], false)],
    ["a blank in the target", () => requestHead("GET", "/ HTTP/1.1", [], false)],
    ["a line end in the method", () => requestHead("GET\r\n", "/", [], false)],
    ["two lengths", () => requestHead("PUT", "/", [["Content-Length", "1"], ["content-length", "1"]], true)],
    ["a length that is none", () => requestHead("PUT", "/", [["Content-Length", "1, 1"]], true)],
    ["the length of no body", () => requestHead("PUT", "/", [["Content-Length", "1"]], false)],
  ])("%s is not sent", (_name, write) => expect(write).toThrow(TypeError)); // prettier-ignore

  test("says that there is no body where one could be", () => {
    const textOfHead = (method: string): string => requestHead(method, "/", [], false).text;
    expect(textOfHead("POST")).toBe(
      "POST / HTTP/1.1\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    );
    expect(textOfHead("GET")).toBe("GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n");
  });
});
