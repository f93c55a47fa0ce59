// What both clients of an origin promise, without TLS and over it: one outcome, told once; the end of the request told once and before a failure; and no
// connection used again on which anything of another answer may be left.

import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  getCACertificates,
  setDefaultCACertificates,
} from "node:tls";
import { beforeAll, describe, expect, test } from "vitest";
import { piecesOf } from "../../../../src/agent/accelerator/origin/origin-body.ts";
import { PlainPool } from "../../../../src/agent/accelerator/origin/plain-pool.ts";
import { PoolToCome } from "../../../../src/agent/accelerator/origin/tls-origins.ts";
import { TlsPool } from "../../../../src/agent/accelerator/origin/tls-pool.ts";
import type {
  OriginConnections,
  PoolOptions,
  WireAnswer,
  WireRequest,
} from "../../../../src/agent/accelerator/origin/wire-request.ts";
import { Stop } from "../../../../src/base/stop.ts";
import { until } from "../../../support/until.ts";
import { makeAuthority } from "../../../support/x509.ts";

const name = "origin.example";
const authority = makeAuthority();
const issued = authority.issue({ names: [name] });

beforeAll(() => {
  setDefaultCACertificates([...getCACertificates("default"), authority.root.pem]);
});

type Handler = (socket: Socket, request: string, no: number) => void;

/** All that was told of one request, in order. */
class Told {
  readonly words: string[] = [];
  readonly answer = Promise.withResolvers<WireAnswer>();
  readonly over = Promise.withResolvers<void>();
  error: unknown;

  constructor() {
    this.answer.promise.catch(() => {}); // Whoever wants it takes it.
  }
}

type Kind = "http" | "https" | "https, whose client is not loaded";

async function open(kind: Kind, handler: Handler) {
  const sockets: Socket[] = [];
  const take = (socket: Socket): void => {
    const no = sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => handler(socket, chunk.toString("latin1"), no));
  };
  const server: Server =
    kind === "http"
      ? createServer(take)
      : createTlsServer({ key: issued.key, cert: issued.chain }, take);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const options = {
    origin: new URL(`${kind === "http" ? kind : "https"}://${name}:${port}`),
    connectMs: 5_000,
    connectionsMax: 8,
    guard: {
      ownListeners: [],
      resolve: (_name: string, _options: unknown, callback: ResolveCallback) =>
        callback(null, [{ address: "127.0.0.1", family: 4 }]),
    },
    steadyMs: () => 0,
  };
  const pool = openPool(kind, options);
  const ask = (
    changes: Partial<WireRequest> = {},
    onAnswer?: (answer: WireAnswer) => void,
  ): Told => {
    const told = new Told();
    const request: WireRequest = {
      method: "GET",
      path: "/",
      fields: [["Host", name]],
      body: undefined,
      stop: new Stop(),
      onInterim: (status) => told.words.push(`interim ${status}`),
      headMs: 5_000,
      silenceMs: 5_000,
      ...changes,
    };
    pool.ask(request, {
      onAnswer: (answer) => {
        told.words.push(`answer ${answer.status}`);
        onAnswer?.(answer);
        told.answer.resolve(answer);
      },
      onFailure: (error) => {
        told.words.push("failure");
        told.error = error;
        told.answer.reject(error);
      },
      onOver: () => {
        told.words.push("over");
        told.over.resolve();
      },
    });
    return told;
  };
  const textOf = async (changes?: Partial<WireRequest>): Promise<string> =>
    textOfBody(await ask(changes).answer.promise);
  return {
    sockets,
    pool,
    ask,
    textOf,
    [Symbol.asyncDispose]: async () => {
      await pool.destroy();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function openPool(kind: Kind, options: PoolOptions): OriginConnections {
  switch (kind) {
    case "http":
      return new PlainPool(options);
    case "https":
      return new TlsPool(options);
    case "https, whose client is not loaded":
      return new PoolToCome(options); // It is there some microtasks after the first request at the earliest.
    default:
      return kind satisfies never;
  }
}

type ResolveCallback = (error: null, addresses: { address: string; family: number }[]) => void;

async function textOfBody({ body }: WireAnswer): Promise<string> {
  let text = "";
  for await (const piece of piecesOf(body)) text += Buffer.from(piece).toString("latin1");
  return text;
}

const ok = (body: string, ...lines: readonly string[]): string =>
  ["HTTP/1.1 200 OK", `Content-Length: ${body.length}`, ...lines, "", body].join("\r\n");
const smuggled = ok("smuggled");
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
/** Long enough for whatever would be told too much. */
const turns = async (): Promise<void> => {
  for (let no = 0; no < 10; no++) await turn();
};

test("who leaves in the step of the head has no use for a body that came whole with it", async () => {
  await using origin = await open("http", (socket, _text, no) => socket.write(ok(`${no}`)));
  const stop = new Stop();
  const told = origin.ask({ stop }, () => stop.abort(new Error("gone")));
  await expect(textOfBody(await told.answer.promise)).rejects.toThrow("gone");
  expect(await origin.textOf()).toBe("2");
  expect(told.words).toEqual(["answer 200", "over"]);
});

describe.each<Kind>(["http", "https", "https, whose client is not loaded"])("over %s", (kind) => {
  test("an answer is told once, and so is its end, also where all came in one piece", async () => {
    await using origin = await open(kind, (socket, _text, no) => socket.write(ok(`${no}`)));
    const told = origin.ask();
    expect(await textOfBody(await told.answer.promise)).toBe("1");
    await turns();
    expect(told.words.toSorted()).toEqual(["answer 200", "over"]);
  });

  test("interim answers are told before the answer, in their order", async () => {
    await using origin = await open(kind, (socket) => {
      const early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
      // undici takes a 100 that it did not ask for as a broken answer.
      const first = kind === "http" ? "HTTP/1.1 100 Continue\r\n\r\n" : "";
      socket.write(`${first}${early}HTTP/1.1 102 Processing\r\n\r\n${ok("x")}`);
    });
    const told = origin.ask();
    expect(await textOfBody(await told.answer.promise)).toBe("x");
    expect(told.words.slice(0, 2)).toEqual(["interim 103", "interim 102"]);
  });

  test("a failure is told once, behind the end", async () => {
    await using origin = await open(kind, (socket) => void socket.destroy());
    const told = origin.ask({ method: "POST" });
    await expect(told.answer.promise).rejects.toThrow();
    await turns();
    expect(told.words).toEqual(["over", "failure"]);
  });

  test("who has left before the request begins is told so, and nobody is asked", async () => {
    let asked = 0;
    await using origin = await open(kind, (socket) => {
      asked++;
      socket.write(ok("x"));
    });
    expect(await origin.textOf()).toBe("x");
    const stop = new Stop();
    stop.abort(new Error("gone"));
    const told = origin.ask({ stop });
    await expect(told.answer.promise).rejects.toThrow("gone");
    await turns();
    expect(told.words).toEqual(["over", "failure"]);
    expect(asked).toBe(1);
  });

  test("who leaves while the head comes gets no answer, and nobody else gets the rest of it", async () => {
    await using origin = await open(kind, (socket, text, no) => {
      if (text.includes("/slow")) socket.write("HTTP/1.1 200 OK\r\nContent-Le");
      else socket.write(ok(`${no}`));
    });
    const stop = new Stop();
    const told = origin.ask({ path: "/slow", stop });
    await until("its head has begun", () => (origin.sockets[0]?.bytesWritten ?? 0) > 0);
    await turns();
    stop.abort(new Error("gone"));
    await expect(told.answer.promise).rejects.toThrow("gone");
    origin.sockets[0]?.write(`ngth: 4\r\n\r\nlate${smuggled}`);
    expect(await origin.textOf()).toBe("2");
    expect(told.words).toEqual(["over", "failure"]);
  });

  test("who leaves in the step of the head breaks the body, and the connection is not used again", async () => {
    await using origin = await open(kind, (socket, text, no) => {
      // What is left of the body looks like an answer.
      if (text.includes("/left"))
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${smuggled}`);
      else socket.write(ok(`${no}`));
    });
    const stop = new Stop();
    const told = origin.ask({ path: "/left", stop }, () => stop.abort(new Error("gone")));
    const rest = textOfBody(await told.answer.promise);
    await expect(rest).rejects.toThrow("gone");
    expect(await origin.textOf()).toBe("2");
    await turns();
    expect(told.words.toSorted()).toEqual(["answer 200", "over"]);
  });

  test.each([
    ["its length", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhalf"],
    ["chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n"],
    ["chunks with trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nX: y\r\n\r\n"],
    ["no body (204)", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["no body (304)", 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n'],
    ["a length of none", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
  ])("whole with %s and discarded with its head: the connection is used again", async (_, whole) => {
    await using origin = await open(kind, (socket, text, no) =>
      socket.write(text.includes("/discard") ? whole : ok(`${no}`)),
    );
    const told = origin.ask({ path: "/discard" }, ({ body }) => body.discard());
    await told.answer.promise;
    await turns();
    expect(await origin.textOf()).toBe("1");
    expect(told.words.toSorted()).toEqual([expect.stringContaining("answer"), "over"]);
  }); // prettier-ignore

  test.each([
    ["half a body", "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nhalf"],
    ["half of its chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ["no end", "HTTP/1.1 200 OK\r\n\r\nhalf"],
    ["a body and another answer behind it", `${ok("half")}${smuggled}`],
    ["chunks and another answer behind them", `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n${smuggled}`],
    ["chunks that are none", `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n${smuggled}`],
    ["204 and a body", `HTTP/1.1 204 No Content\r\n\r\n${smuggled}`],
    ["304 and a body", `HTTP/1.1 304 Not Modified\r\n\r\n${smuggled}`],
    ["a word to close", ok("half", "Connection: close")],
  ])("with %s, discarded with its head: nobody gets what is left", async (_, bytes) => {
    await using origin = await open(kind, (socket, text, no) =>
      socket.write(text.includes("/discard") ? bytes : ok(`${no}`)),
    );
    const told = origin.ask({ path: "/discard" }, ({ body }) => body.discard());
    await told.answer.promise.catch(() => {}); // A client may take it for no answer.
    await turns();
    expect(await origin.textOf()).toBe("2");
    expect(told.words.filter((word) => word === "over")).toHaveLength(1);
  }); // prettier-ignore

  test.each([
    ["a body and another answer behind it", `${ok("half")}${smuggled}`, "half"],
    ["chunks and another answer behind them", `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n${smuggled}`, "half"],
    ["204 and a body", `HTTP/1.1 204 No Content\r\n\r\n${smuggled}`, ""],
    ["304 and a body", `HTTP/1.1 304 Not Modified\r\n\r\n${smuggled}`, ""],
    ["a word to close", ok("half", "Connection: close"), "half"],
  ])("with %s, taken in full: it ends where it says, and nobody gets what is left", async (_, bytes, body) => {
    await using origin = await open(kind, (socket, text, no) =>
      socket.write(text.includes("/odd") ? bytes : ok(`${no}`)),
    );
    expect(await origin.textOf({ path: "/odd" }).catch(() => body)).toBe(body);
    await turns();
    expect(await origin.textOf()).toBe("2");
  }); // prettier-ignore

  test("HEAD that is answered with a body: nobody gets it", async () => {
    await using origin = await open(kind, (socket, text, no) =>
      socket.write(text.startsWith("HEAD") ? `${ok("x".repeat(20))}${smuggled}` : ok(`${no}`)),
    );
    expect(await origin.textOf({ method: "HEAD" }).catch(() => "")).toBe("");
    await turns();
    expect(await origin.textOf()).toBe("2");
  });

  test("an answer before the end of the request's body: the connection is not used again", async () => {
    await using origin = await open(kind, (socket, text, no) => {
      if (text.includes("POST ")) socket.write(ok("enough"));
      else if (text.includes("GET ")) socket.write(ok(`${no}`));
    });
    const never = Promise.withResolvers<void>();
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a");
      await never.promise;
      yield Buffer.from(`GET /smuggled HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
    }
    const told = origin.ask({ method: "POST", body: slow });
    expect(await textOfBody(await told.answer.promise).catch(() => "enough")).toBe("enough");
    never.resolve();
    expect(await origin.textOf()).toBe("2");
    expect(told.words.filter((word) => word !== "failure")).toHaveLength(2);
  });

  test("a pool that is destroyed ends what is under way, once", async () => {
    await using origin = await open(kind, (socket, text) => {
      if (text.includes("/begun")) socket.write(ok("half").slice(0, -2));
    });
    const begun = origin.ask({ path: "/begun" });
    const rest = textOfBody(await begun.answer.promise);
    const silent = origin.ask({ path: "/silent" });
    await until("both are asked", () => origin.sockets.length === 2);
    const ends = Promise.allSettled([rest, silent.answer.promise]);
    await origin.pool.destroy();
    expect((await ends).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await turns();
    expect(begun.words).toEqual(["answer 200", "over"]);
    expect(silent.words).toEqual(["over", "failure"]);
  });
});
