// Answers of hostile and broken origins: what is taken, Node's own parser reads alike, however the bytes come in; and what two could read differently is refused.

import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { isReadable } from "../../../../src/agent/accelerator/origin/origin-answer.ts";
import { PlainConnection } from "../../../../src/agent/accelerator/origin/plain-connection.ts";
import { createRandom } from "../../../support/outside-random.ts";

/** A connection whose other end is the test. */
class FakeSocket extends EventEmitter {
  destroyed = false;
  readable = true;
  writable = true;
  writableNeedDrain = false;
  written = "";
  #isPaused = false;

  write(data: string | Uint8Array): boolean {
    this.written += Buffer.from(data as string, "latin1").toString("latin1");
    return true;
  }
  cork(): void {}
  uncork(): void {}
  pause(): void {
    this.#isPaused = true;
  }
  resume(): void {
    this.#isPaused = false;
  }
  isPaused(): boolean {
    return this.#isPaused;
  }
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

type Outcome = {
  status: number;
  fields: readonly (readonly [string, string])[];
  body: string;
  end: "open" | "complete" | "failed";
  /** The connection may be used again. */
  isKept: boolean;
  reason: string;
};

const never = new AbortController().signal;

/** What is read of bytes that come in these pieces, behind which the origin closes. */
function readOurs(pieces: readonly Buffer[], method = "GET"): Outcome {
  const read: Outcome = {
    status: 0,
    fields: [],
    body: "",
    end: "open",
    isKept: false,
    reason: "",
  };
  const socket = new FakeSocket();
  const connection = new PlainConnection(
    // It has what the connection uses.
    socket as unknown as Socket,
    () => (read.isKept = true),
    () => {},
  );
  const fail = (error: Error): void => {
    read.end = "failed";
    read.reason = error.message;
  };
  connection.ask(
    {
      method,
      path: "/",
      fields: [["Host", "a.example"]],
      body: undefined,
      stop: never,
      onInterim: undefined,
      headMs: 60_000,
      silenceMs: 60_000,
    },
    {
      onAnswer: ({ status, fields, body }) => {
        [read.status, read.fields] = [status, fields];
        body.flow({
          piece: (bytes) => {
            read.body += Buffer.from(bytes).toString("latin1");
            return true;
          },
          end: () => (read.end = "complete"),
          fail,
        });
      },
      onFailure: fail,
      onOver: () => {},
    },
  );
  for (const piece of pieces) if (!socket.destroyed) socket.emit("data", piece);
  if (!socket.destroyed && read.end === "open") socket.emit("end");
  socket.destroy();
  return read;
}

const { HTTPParser } = createRequire(import.meta.url)("_http_common") as {
  HTTPParser: {
    new (): Record<number, unknown> & {
      initialize: (type: number, owner: object, maxHeaderSize: number, lenient: number) => void;
      execute: (bytes: Buffer) => number | Error;
      finish: () => undefined | Error;
    };
    RESPONSE: number;
    kOnHeaders: number;
    kOnHeadersComplete: number;
    kOnBody: number;
    kOnMessageComplete: number;
    kLenientNone: number;
  };
};

type ReadByNode = Pick<Outcome, "status" | "body"> & {
  raw: readonly string[];
  isComplete: boolean;
};

function readByNode(bytes: Buffer, method: string): ReadByNode {
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.RESPONSE, {}, 64 * 1024, HTTPParser.kLenientNone ?? 0);
  const read: ReadByNode = { status: 0, body: "", raw: [], isComplete: false };
  let early: string[] = [];
  const isFinal = (): boolean => read.status >= 200;
  parser[HTTPParser.kOnHeaders] = (raw: string[]) => {
    if (!read.isComplete) early = [...early, ...raw];
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    _major: number,
    _minor: number,
    raw: string[] | undefined,
    _method: unknown,
    _url: unknown,
    status: number,
  ) => {
    if (!isFinal()) {
      read.status = status;
      read.raw = [...early, ...(raw ?? [])];
    }
    early = [];
    return method === "HEAD" ? 1 : 0;
  };
  parser[HTTPParser.kOnBody] = (data: Buffer) => {
    if (!read.isComplete) read.body += data.toString("latin1");
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    if (isFinal()) read.isComplete = true;
  };
  if (!(parser.execute(bytes) instanceof Error)) parser.finish();
  return read;
}

function disagreement(bytes: Buffer, method: string, ours: Outcome): string | undefined {
  const node = readByNode(bytes, method);
  if (!node.isComplete) return "node does not take it, or waits for more";
  if (node.status !== ours.status) return `node reads status ${node.status}`;
  if (node.body !== ours.body) return `node reads the body ${JSON.stringify(node.body)}`;
  const raw = node.raw.map((part, at) => (at % 2 === 0 ? part : part.replace(/[\t ]+$/, "")));
  return JSON.stringify(raw) === JSON.stringify(ours.fields.flat())
    ? undefined
    : "node reads other fields";
}

const answer = (...lines: readonly string[]): string => `${lines.join("\r\n")}\r\n\r\n`;
const ok = "HTTP/1.1 200 OK";
const chunked = answer(ok, "Transfer-Encoding: chunked");

const seeds: readonly string[] = [
  `${answer(ok, "Content-Type: text/html; charset=utf-8", "Content-Length: 11", "Cache-Control: max-age=60", 'ETag: "a"', "Vary: Accept-Encoding", "Connection: keep-alive", "Keep-Alive: timeout=5, max=99")}hello world`,
  `${chunked}5\r\nhello\r\n6;a=b;c="d e"\r\n world\r\n0\r\n\r\n`,
  `${answer(ok, "Transfer-Encoding: chunked", "Trailer: X-A")}a\r\n0123456789\r\n0\r\nX-A: b\r\n\r\n`,
  `${answer("HTTP/1.0 200 OK", "Content-Type: text/plain")}until the end`,
  `${answer("HTTP/1.1 103 Early Hints", "Link: </a.css>")}${answer("HTTP/1.1 404 Not Found", "Content-Length: 3")}no\n`,
  answer("HTTP/1.1 204 No Content", "Date: Tue, 15 Nov 1994 08:12:31 GMT"),
  answer("HTTP/1.1 304 Not Modified", 'ETag: "a"', "Content-Length: 5"),
  `${answer(ok, "Content-Length: 4", "Transfer-Encoding: chunked")}4\r\nwiki\r\n0\r\n\r\n`,
  `${answer("HTTP/1.1 200", "Content-Length: 2", "Set-Cookie: a=b", "Set-Cookie: c=d")}ok`,
];
const pieces = [
  "\r\n", "\n", "\r", " ", "\t", ":", "\0", ";", ",", "\x0b", "\x0c", "\x7f", "\x85", "\xff", "0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1", "HTTP/1.0",
  "Content-Length: 3\r\n", "Content-Length: +3\r\n", "Content-Length: 3, 3\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
  "Transfer-Encoding: identity\r\n", "Content-Length : 3\r\n", "X:\r\n y\r\n", "Connection: close\r\n", "chunked", "-1", "0x", "ffffffffffffffff", ";a=\"", "204", "100",
]; // prettier-ignore

function mutate(seed: string, random: () => number): string {
  const below = (most: number): number => Math.floor(random() * most);
  let text = seed;
  for (let changes = 1 + below(3); changes > 0; changes--) {
    const at = below(text.length + 1);
    const piece =
      random() < 0.5 ? (pieces[below(pieces.length)] ?? "") : String.fromCodePoint(below(256));
    const kind = below(4);
    if (kind === 0) text = text.slice(0, at) + piece + text.slice(at);
    else if (kind === 1) text = text.slice(0, at) + text.slice(at + 1 + below(4));
    else if (kind === 2) text = text.slice(0, at) + piece + text.slice(at + piece.length);
    else {
      const to = Math.min(text.length, at + 1 + below(40));
      text = text.slice(0, to) + text.slice(at, to) + text.slice(to);
    }
  }
  return text;
}

function split(bytes: Buffer, random: () => number): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const to = at + 1 + Math.floor(random() ** 3 * bytes.length);
    parts.push(bytes.subarray(at, to));
    at = to;
  }
  return parts;
}

test(
  "100,000 mutated answers: Node reads none otherwise that is taken, and the split makes no difference",
  {
    timeout: 120_000,
  },
  () => {
    const random = createRandom(1).next;
    let [taken, refused] = [0, 0];
    for (let no = 0; no < 100_000; no++) {
      const method = no % 7 === 0 ? "HEAD" : "GET";
      const text = mutate(seeds[no % seeds.length] ?? "", random);
      const bytes = Buffer.from(text, "latin1");
      const ours = readOurs(split(bytes, random), method);
      const whole = readOurs([bytes], method);
      const parts = [ours, whole].map(({ status, fields, body, end }) => [
        status,
        fields,
        body,
        end,
      ]);
      expect(parts[0], JSON.stringify(text)).toEqual(parts[1]);
      // What codings there are beside `chunked` is asked by whoever takes the head: it refuses them.
      const isCoded = !isReadable(ours);
      if (ours.end !== "complete") refused++;
      if (ours.end !== "complete" || isCoded) continue;
      taken++;
      expect(disagreement(bytes, method, ours), JSON.stringify(text)).toBeUndefined();
    }
    expect(taken).toBeGreaterThan(20_000);
    expect(refused).toBeGreaterThan(20_000);
  },
);

const one = (text: string, method?: string): Outcome =>
  readOurs([Buffer.from(text, "latin1")], method);

describe("what is read", () => {
  test.each<[string, string, Partial<Outcome>, string?]>([
    ["a stated length", `${answer(ok, "Content-Length: 2")}ok`, { body: "ok", isKept: true }],
    ["a length of nothing", answer(ok, "Content-Length: 0"), { body: "", isKept: true }],
    ["chunks", `${chunked}2\r\nok\r\n0\r\n\r\n`, { body: "ok", isKept: true }],
    ["trailers", `${chunked}0\r\nX: y\r\n\r\n`, { body: "", isKept: true }],
    ["the end of the connection", `${answer(ok)}ok`, { body: "ok", isKept: false }],
    ["Connection: close", `${answer(ok, "Content-Length: 2", "Connection: x, Close")}ok`, { body: "ok", isKept: false }],
    ["HTTP/1.0", `${answer("HTTP/1.0 200 OK", "Content-Length: 2")}ok`, { body: "ok", isKept: false }],
    ["HTTP/1.0 that stays", `${answer("HTTP/1.0 200 OK", "Content-Length: 2", "Connection: keep-alive")}ok`, { body: "ok", isKept: true }],
    ["204", answer("HTTP/1.1 204 No Content"), { status: 204, isKept: true }],
    ["204 with a length", answer("HTTP/1.1 204 No Content", "Content-Length: 4"), { status: 204, isKept: true }],
    ["304 with the length of what it stands for", answer("HTTP/1.1 304 Not Modified", "Content-Length: 4"), { status: 304, isKept: true }],
    ["an answer to HEAD, whose connection ends", answer(ok, "Content-Length: 4"), { body: "", isKept: false }, "HEAD"],
    ["what follows ends the connection", `${answer(ok, "Content-Length: 2")}okHTTP/1.1 200`, { body: "ok", isKept: false }],
    ["interim answers before it", `${answer("HTTP/1.1 100 Continue")}${answer("HTTP/1.1 102 Processing")}${answer(ok, "Content-Length: 0")}`, { status: 200, isKept: true }],
    ["no reason phrase", answer("HTTP/1.1 200", "Content-Length: 0"), { status: 200 }],
    ["blanks around a value", `${answer(ok, "Content-Length:\t 2 \t")}ok`, { body: "ok" }],
  ])("%s", (_name, text, expected, method) => {
    expect(one(text, method)).toMatchObject({ end: "complete", ...expected });
  }); // prettier-ignore
});

describe("what is refused", () => {
  const fields = (count: number): string[] =>
    Array.from({ length: count }, (_, no) => `X-${no}: ${"y".repeat(100)}`);
  test.each<[string, string]>([
    ["another protocol", "220 mail.example.com ESMTP\r\n"],
    ["HTTP/2", answer("HTTP/2.0 200 OK", "Content-Length: 0")],
    ["no status", answer("HTTP/1.1 OK", "Content-Length: 0")],
    ["a status of two digits", answer("HTTP/1.1 20 OK", "Content-Length: 0")],
    ["an empty line before it", `\r\n${answer(ok, "Content-Length: 0")}`],
    ["line feeds alone", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
    ["a line feed alone", "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 0\r\n\r\n"],
    ["a carriage return alone", answer(ok, "X: a\rContent-Length: 0")],
    ["a NUL", answer(ok, "X: a\0b")],
    ["a folded field", answer(ok, "X: a", " b", "Content-Length: 0")],
    ["a blank before the colon", answer(ok, "Content-Length : 0")],
    ["a field without a name", answer(ok, ": a")],
    ["a field without a colon", answer(ok, "X a")],
    ["two lengths", answer(ok, "Content-Length: 0", "Content-Length: 0")],
    ["a list of lengths", answer(ok, "Content-Length: 0, 0")],
    ["a signed length", answer(ok, "Content-Length: +0")],
    ["a length in another base", answer(ok, "Content-Length: 0x0")],
    ["a length beyond counting", answer(ok, "Content-Length: 9007199254740993")],
    ["a length beside a coding", `${answer(ok, "Content-Length: 3", "Transfer-Encoding: chunked")}0\r\n\r\n`],
    ["a coding in HTTP/1.0", `${answer("HTTP/1.0 200 OK", "Transfer-Encoding: chunked")}0\r\n\r\n`],
    ["a protocol that nobody asked for", answer("HTTP/1.1 101 Switching Protocols", "Upgrade: x")],
    ["interim answers without end", answer("HTTP/1.1 102 Processing").repeat(65)],
    ["a head that is too large", answer(ok, ...fields(1_280), "Content-Length: 0")],
    ["a head that ends early", "HTTP/1.1 200 OK\r\nContent-Le"],
    ["nothing at all", ""],
  ])("%s", (_name, text) => {
    expect(one(text)).toMatchObject({ status: 0, end: "failed", isKept: false });
  }); // prettier-ignore

  test.each<[string, string]>([
    ["a body that is shorter than its length", `${answer(ok, "Content-Length: 3")}ok`],
    ["chunks without end", `${chunked}2\r\nok\r\n`],
    ["a chunk that is cut", `${chunked}5\r\nok`],
    ["a chunk that is longer than its size", `${chunked}2\r\nokay\r\n0\r\n\r\n`],
    ["a size that is none", `${chunked}x\r\nok\r\n0\r\n\r\n`],
    ["no size", `${chunked}\r\nok\r\n0\r\n\r\n`],
    ["a signed size", `${chunked}-2\r\nok\r\n0\r\n\r\n`],
    ["a size with a prefix", `${chunked}0x2\r\nok\r\n0\r\n\r\n`],
    ["a size beyond counting", `${chunked}ffffffffffffffff\r\nok`],
    ["a blank behind a size", `${chunked}2 \r\nok\r\n0\r\n\r\n`],
    ["a size that ends in a line feed alone", `${chunked}2\nok\r\n0\r\n\r\n`],
    ["a chunk that ends in a line feed alone", `${chunked}2\r\nok\n0\r\n\r\n`],
    ["extensions without end", `${chunked}${`1;${"a".repeat(5_000)}\r\nx\r\n`.repeat(4)}0\r\n\r\n`],
    ["an extension that is no line", `${chunked}1;${"a".repeat(20_000)}`],
    ["trailers without end", `${chunked}0\r\n${`X: ${"y".repeat(4_000)}\r\n`.repeat(5)}\r\n`],
    ["a trailer that is none", `${chunked}0\r\nX y\r\n\r\n`],
  ])("in the middle: %s", (_name, text) => {
    expect(one(text)).toMatchObject({ status: 200, end: "failed", isKept: false });
  }); // prettier-ignore

  test("a head of the size that is allowed is not", () => {
    const text = answer(ok, ...fields(155), "Content-Length: 0");
    expect(one(text)).toMatchObject({ status: 200, end: "complete" });
  });
});
