// Nobody gets what belongs to another: visitors over the lane, over node:http and over HTTP/2 ask at once for what is passed on, not stored and stored, of an origin
// that splits, cuts, resets, answers too early, too much and not at all; and they leave when it suits them.

import { once, type EventEmitter } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createRandom, type Random } from "../../../support/outside-random.ts";
import { until } from "../../../support/until.ts";
import { ask, Edge, host, stateOf } from "../edge.ts";
import { installed, tableOf, visitByHttp2, type Http2Visitor } from "../secure-clients.ts";

const smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSMUGGLED";
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** How an origin answers. */
const manners = [
  "length",
  "length",
  "chunked",
  "chunked",
  "close",
  "interim",
  "empty",
  "cut",
  "reset",
  "extra",
  "extra-chunked",
  "none-and-more",
  "odd-304",
  "nothing",
  "early",
] as const;
type Manner = (typeof manners)[number];

/** The body of the answer to a request: says whose it is in every few bytes. */
function bodyFor(id: string, bytes: number): string {
  return `<${id}>`.repeat(Math.ceil(bytes / (id.length + 2)));
}

/** What is asked: who asks, how the origin is to answer, and how much. */
type Wish = { readonly id: string; readonly manner: Manner; readonly bytes: number };

function wishOf(path: string): Wish {
  const [, , id = "", manner = "", bytes = "0"] = path.split("/");
  return { id, manner: manner as Manner, bytes: Number(bytes) };
}

/** A connection at the origin: reads requests as strictly as it can, and answers each in its manner. */
class OriginEnd {
  readonly #socket: Socket;
  readonly #random: Random;
  readonly #wrong: string[];
  readonly #seen: Set<string>;
  #text = "";
  #isAnswering = false;

  constructor(socket: Socket, random: Random, wrong: string[], seen: Set<string>) {
    this.#socket = socket;
    this.#random = random;
    this.#wrong = wrong;
    this.#seen = seen;
  }

  begin(): void {
    const socket = this.#socket;
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("latin1");
      this.#read();
    });
  }

  #read(): void {
    if (this.#isAnswering) return;
    const end = this.#text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#text.slice(0, end);
    const [, method = "", path = ""] = /^([A-Z]+) (\/\S*) HTTP\/1\.1\r\n/.exec(head) ?? [];
    if (method === "") {
      this.#wrong.push(`no request: ${JSON.stringify(head.slice(0, 80))}`);
      this.#socket.destroy();
      return;
    }
    const rest = this.#text.slice(end + 4);
    const body = bodyIn(head, rest);
    const wish = wishOf(path);
    this.#seen.add(path);
    if (body === undefined && wish.manner !== "early") return;
    if (body !== undefined) this.#check(method, wish, body.text);
    // Whoever is answered before he has sent all is not listened to any more.
    this.#text = body === undefined ? "" : rest.slice(body.end);
    void this.#answerThenRead(method, wish);
  }

  async #answerThenRead(method: string, wish: Wish): Promise<void> {
    this.#isAnswering = true;
    await this.#answer(method, wish);
    this.#isAnswering = false;
    this.#read();
  }

  #check(method: string, { id }: Wish, text: string): void {
    const own = text.replaceAll(`<${id}>`, "");
    if (own !== "")
      this.#wrong.push(`${method} of ${id} came with ${JSON.stringify(own.slice(0, 80))}`);
  }

  async #answer(method: string, { id, manner, bytes }: Wish): Promise<void> {
    const socket = this.#socket;
    const body = bodyFor(id, bytes);
    const lines = [`X-Id: ${id}`, `Cache-Control: ${bytes % 2 === 0 ? "max-age=60" : "no-store"}`];
    const head = (status: string, ...more: readonly string[]): string =>
      [`HTTP/1.1 ${status}`, ...lines, ...more, "", ""].join("\r\n");
    const sent = method === "HEAD" ? "" : body;
    const whole = `${head("200 OK", `Content-Length: ${body.length}`)}${sent}`;
    const chunked = `${head("200 OK", "Transfer-Encoding: chunked")}${method === "HEAD" ? "" : this.#chunksOf(body)}`;
    switch (manner) {
      case "chunked":
        return this.#send(chunked);
      case "close":
        await this.#send(head("200 OK", "Connection: close") + sent);
        socket.end();
        return undefined;
      case "interim":
        return this.#send(`HTTP/1.1 103 Early Hints\r\nLink: <${id}>\r\n\r\n${whole}`);
      case "empty":
        return this.#send(head("204 No Content"));
      case "cut":
      case "reset":
        await this.#send(whole.slice(0, Math.floor(whole.length * this.#random.next())));
        if (manner === "cut") socket.destroy();
        else socket.resetAndDestroy();
        return undefined;
      case "extra":
        socket.write(whole + smuggled, "latin1");
        return undefined;
      case "extra-chunked":
        socket.write(chunked + smuggled, "latin1");
        return undefined;
      case "none-and-more":
        socket.write(head("204 No Content") + smuggled, "latin1");
        return undefined;
      case "odd-304":
        return this.#send(head("304 Not Modified"));
      case "nothing":
        socket.destroy();
        return undefined;
      default:
        return this.#send(whole);
    }
  }

  #chunksOf(body: string): string {
    let chunks = "";
    for (let at = 0; at < body.length;) {
      const size = 1 + Math.floor(this.#random.next() * 40_000);
      const data = body.slice(at, at + size);
      chunks += `${data.length.toString(16)}${this.#random.next() < 0.2 ? ";a=b" : ""}\r\n${data}\r\n`;
      at += size;
    }
    return `${chunks}0\r\n${this.#random.next() < 0.3 ? "X-Trailer: t\r\n" : ""}\r\n`;
  }

  /** In up to four pieces, with or without a pause between them. */
  async #send(text: string): Promise<void> {
    const random = this.#random;
    const cuts = Array.from({ length: Math.floor(random.next() * 4) }, () =>
      Math.floor(random.next() * Math.min(text.length, random.next() < 0.5 ? 300 : Infinity)),
    );
    let from = 0;
    for (const cut of cuts.toSorted((a, b) => a - b)) {
      if (this.#socket.destroyed) return;
      this.#socket.write(text.slice(from, cut), "latin1");
      from = cut;
      await (random.next() < 0.7 ? turn() : pause(2));
    }
    if (!this.#socket.destroyed) this.#socket.write(text.slice(from), "latin1");
  }
}

/** Undefined: it is not there yet. */
function bodyIn(head: string, rest: string): { text: string; end: number } | undefined {
  const length = Number(/\r\nContent-Length: (\d+)/i.exec(head)?.[1] ?? 0);
  if (!/\r\nTransfer-Encoding: chunked/i.test(head))
    return rest.length < length ? undefined : { text: rest.slice(0, length), end: length };
  let text = "";
  for (let at = 0; ;) {
    const line = rest.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(rest.slice(at, line), 16);
    if (rest.length < line + 2 + size + 2) return undefined;
    text += rest.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
    if (size === 0) return { text, end: at };
  }
}

type Got = { readonly status: number; readonly id: string | undefined; readonly text: string };

/** What is wrong with an answer, if anything is. Whoever gets none has nothing of another. */
function faultOf({ id, manner, bytes }: Wish, method: string, got: Got): string | undefined {
  if (got.status >= 500) return got.id === undefined ? undefined : `${got.status} of ${got.id}`;
  if (got.id !== id) return `answer of ${got.id}`;
  if (got.status === 204 || got.status === 304)
    return got.text === "" ? undefined : `${got.status} with a body`;
  const expected = method === "HEAD" ? "" : bodyFor(id, bytes);
  if (got.text === expected) return undefined;
  // Where the end of the connection is the end of the body a cut cannot be told.
  if (manner === "close" && expected.startsWith(got.text)) return undefined;
  return `${got.text.length} bytes, not ${expected.length}: ${JSON.stringify(got.text.slice(0, 60))}`;
}

/** Also of one that broke off, for which `once` would reject. */
function closeOf(emitter: EventEmitter): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  emitter.once("close", resolve);
  return promise;
}

/** Several requests on one connection; reads no more than the test wants, and leaves when it wants. */
async function rawVisit(
  port: number,
  request: string,
  random: Random,
): Promise<{ readonly text: string; readonly hasLeft: boolean }> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    if (random.next() < 0.2) {
      socket.pause();
      setTimeout(() => socket.resume(), 3);
    }
  });
  const closed = closeOf(socket);
  const isLeaving = random.next() < 0.4;
  const cut = Math.floor(random.next() * request.length);
  socket.write(request.slice(0, cut), "latin1");
  await turn();
  socket.write(request.slice(cut), "latin1");
  if (isLeaving) {
    for (let turns = Math.floor(random.next() * 12); turns > 0; turns--) await turn();
    if (random.next() < 0.5) socket.resetAndDestroy();
    else socket.destroy();
  }
  await closed;
  return { text, hasLeft: isLeaving };
}

const seeds = [1, 2, 3, 4];

describe.each(seeds)("seed %i", (seed) => {
  test.each([true, false])(
    "each gets his own answer or none; bodies of requests streamed: %s",
    async (streams) => {
      const random = createRandom(seed * 7 + (streams ? 1 : 0));
      const wrong: string[] = [];
      const ends: Socket[] = [];
      const seen = new Set<string>();
      const server = createServer((socket) => {
        ends.push(socket);
        new OriginEnd(socket, random, wrong, seen).begin();
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as { port: number }; // It listens on TCP.
      await using edge = new Edge({ originShares: { requestsMax: 24, waitingMax: 1_000 } });
      await edge.listen();
      const securePort = await edge.listenSecure();
      const site = {
        backend: { urls: [`http://127.0.0.1:${port}`], retries: 1, stream_request_body: streams },
        cache: { rules: [{ path: "/pass/**", bypass: true }] },
      };
      edge.publish({ ...stateOf(1, site), certificates: tableOf(installed()) });
      await using http2 = await visitByHttp2(securePort);
      let made = 0;
      const newWish = (): { readonly wish: Wish; readonly path: string } => {
        const manner = random.pick(manners) ?? "length";
        const size = random.pick([0, 10, 900, 9_001, 16_384, 17_000, 70_001, 200_000]) ?? 0;
        const wish = { id: `v${++made}`, manner, bytes: size };
        const room = random.next() < 0.5 ? "pass" : "cached";
        return { wish, path: `/${room}/${wish.id}/${manner}/${size}` };
      };
      const visits = Array.from({ length: 150 }, async (_, no) => {
        await pause(Math.floor(no / 10) * 4);
        const { wish, path } = newWish();
        const method = random.pick(["GET", "GET", "GET", "HEAD", "POST", "PUT"]) ?? "GET";
        const hasBody = method === "POST" || method === "PUT";
        const body = hasBody ? bodyFor(wish.id, random.pick([5, 3_000, 40_000]) ?? 5) : undefined;
        const note = (fault: string | undefined): void => {
          if (fault !== undefined) wrong.push(`${method} ${path}: ${fault}`);
        };
        const way = random.pick(["ask", "raw", "http2", "http2-leaves"]);
        if (way === "http2-leaves") await leaveByHttp2(http2, method, path, body, random);
        else if (way === "raw") {
          const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
          const end = `Host: ${host}\r\nConnection: close\r\n${length}\r\n${body ?? ""}`;
          const { text } = await rawVisit(
            edge.port,
            `${method} ${path} HTTP/1.1\r\n${end}`,
            random,
          );
          note(strangerIn(wish.id, text));
        } else {
          const asked = { method, ...(body !== undefined && { body }) };
          const asking = way === "http2" ? http2.ask(path, asked) : ask(edge, path, asked);
          const got = await asking.catch(() => undefined); // It broke off.
          if (got === undefined) return;
          const { status, headers, text } = got;
          note(faultOf(wish, method, { status, id: headers["x-id"]?.toString(), text }));
        }
      });
      await Promise.all(visits);
      expect(wrong).toEqual([]);
      // Nothing is left over: each request that the origin saw has one record, no visitor's connection is open, and each place at the origin is free.
      const isRecorded = (path: string): boolean =>
        edge.records.some(({ uri_path: recorded }) => recorded === path);
      await until("every request has its record", () => [...seen].every(isRecorded));
      const paths = edge.records.map(({ uri_path: path }) => path);
      expect(new Set(paths).size).toBe(paths.length);
      await until("visitors are gone but for one", () => edge.openConnections === 1);
      const last = Array.from({ length: 24 }, async (_, no) => {
        const path = `/pass/last${no}/length/20`;
        return (await ask(edge, path)).text === bodyFor(`last${no}`, 20);
      });
      expect(await Promise.all(last)).not.toContain(false);
      for (const end of ends) end.destroy();
      server.close();
    },
    30_000,
  );
});

async function leaveByHttp2(
  { begin }: Http2Visitor,
  method: string,
  path: string,
  body: string | undefined,
  random: Random,
): Promise<void> {
  const head = { ":path": path, ":method": method };
  // The client ends what it has begun when it cancels: only the stated length tells that it is not all.
  const stated = body === undefined ? head : { ...head, "content-length": body.length };
  const stream = begin(stated, body === undefined);
  if (body !== undefined) stream.write(body.slice(0, body.length / 2));
  stream.resume();
  const closed = closeOf(stream);
  for (let turns = Math.floor(random.next() * 12); turns > 0; turns--) await turn();
  stream.close(8); // CANCEL
  await closed;
}

/** What of another is in what a visitor was sent, if anything is. */
function strangerIn(id: string, text: string): string | undefined {
  if (text.includes("SMUGGLED")) return "it got what belongs to nobody";
  const other = [...text.matchAll(/<(v\d+|last\d+)>/g)].find(([, one]) => one !== id);
  return other === undefined ? undefined : `it got what belongs to ${other[1]}`;
}
