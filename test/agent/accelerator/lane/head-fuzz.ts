// Mutated heads for the scanner, and node's own parser beside it: what is fuzzed in CI, by the benchmark `head-fuzz`, and before a second parser.

import { createRequire } from "node:module";
import type { PlainHead, Scan } from "../../../../src/agent/accelerator/lane/head-scanner.ts";
import { createRandom } from "../../../support/outside-random.ts";

export const browser = [
  "GET /assets/app-3f2a.css?v=7&x=%20a HTTP/1.1",
  "Host: www.example.com",
  "Connection: keep-alive",
  'sec-ch-ua: "Chromium";v="140", "Not=A?Brand";v="24"',
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0",
  "Accept: text/css,*/*;q=0.1",
  "Referer: https://www.example.com/",
  "Accept-Encoding: gzip, deflate, br, zstd",
  "Accept-Language: de-DE,de;q=0.9,en;q=0.8",
  'If-None-Match: "page-1"',
  "Cookie: _ga=GA1.2.3; consent=yes",
];
export const head = (...lines: readonly string[]): string => `${lines.join("\r\n")}\r\n\r\n`;
export const host = "Host: a.example";

// Node's own parser, called directly: one head in, what it reads of it out.

type Read = {
  readonly method: string;
  readonly url: string;
  readonly version: string;
  readonly raw: readonly string[];
  readonly keepsAlive: boolean;
  /** Bytes that the head took; undefined where a body is to follow. */
  readonly end: number | undefined;
};

const { HTTPParser, methods } = createRequire(import.meta.url)("_http_common") as {
  HTTPParser: {
    new (): Record<number, unknown> & {
      initialize: (type: number, owner: object, maxHeaderSize: number, lenient: number) => void;
      execute: (bytes: Buffer) => number | Error;
    };
    REQUEST: number;
    kOnHeaders: number;
    kOnHeadersComplete: number;
    kOnMessageComplete: number;
    kLenientNone: number;
  };
  methods: readonly string[];
};

/** Undefined: node refuses it, or waits for more. */
function readByNode(bytes: Buffer): Read | undefined {
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.REQUEST, {}, 32 * 1024, HTTPParser.kLenientNone ?? 0);
  let early: string[] = [];
  let earlyUrl = "";
  let read: Omit<Read, "end"> | undefined;
  let isComplete = false;
  parser[HTTPParser.kOnHeaders] = (raw: string[], url: string) => {
    early = [...early, ...raw];
    earlyUrl += url;
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    major: number,
    minor: number,
    raw: string[] | undefined,
    method: number,
    url: string,
    _status: unknown,
    _message: unknown,
    _upgrade: boolean,
    keepsAlive: boolean,
  ) => {
    read ??= {
      method: methods[method] ?? "",
      url: earlyUrl + (url ?? ""),
      version: `${major}.${minor}`,
      raw: [...early, ...(raw ?? [])],
      keepsAlive,
    };
    return 0;
  };
  let end: number | undefined;
  parser[HTTPParser.kOnMessageComplete] = () => {
    isComplete = true;
  };
  // Byte by byte behind the head would be slow: the head's own bytes are given, and must be all that it takes.
  const taken = parser.execute(bytes);
  if (isComplete && taken === bytes.length) end = bytes.length;
  return read === undefined ? undefined : { ...read, end };
}

/** What node reads otherwise than the scanner; undefined: nothing. */
export function otherwiseInNode(bytes: Buffer, found: PlainHead): string | undefined {
  const read = readByNode(bytes.subarray(0, found.end));
  if (read === undefined) return "node does not take it";
  if (read.end !== found.end) return "node reads a body, or ends elsewhere";
  if (read.version !== "1.1") return `node reads version ${read.version}`;
  if (read.method !== found.method || read.url !== found.url)
    return `node reads ${read.method} ${read.url}`;
  if (read.keepsAlive === found.said.isLast) return "node ends the connection otherwise";
  const raw = found.fields.flat();
  return JSON.stringify(raw) === JSON.stringify(read.raw) ? undefined : "node reads other fields";
}

const smuggled = "GET /other HTTP/1.1\r\nHost: b.example\r\n\r\n";

/** What parsers were caught with: each line by itself in a head that is plain otherwise. */
const catches = [
  "Content-Length: 5", "Content-Length: +5", "Content-Length: 0x5", "Content-Length: 5, 5", "Content-Length : 5", "Content-Length\t: 5", "Content_Length: 5",
  "Content-Length: 5\r\nContent-Length: 6", "Content-Length:", "\u0001Content-Length: 5", "Content-Length\0: 5", "X: a\nContent-Length: 5", "X: a\rContent-Length: 5",
  "X:\nContent-Length: 5", "X:\rContent-Length: 5", "X: a\r\r\nContent-Length: 5", "X: a\r\n Content-Length: 5", "X: a\r\n\tContent-Length: 5", "X: a\0\r\nContent-Length: 5",
  "Transfer-Encoding: chunked", "Transfer-Encoding:chunked", "Transfer-Encoding : chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding: identity, chunked", "Transfer-Encoding:\u000bchunked", "Transfer-Encoding:\u000cchunked", "Transfer-Encoding: chunked\u0001", "Transfer_Encoding: chunked",
  "Transfer-Encoding\r\n: chunked", "X: a\r\nTransfer-Encoding: chunked", " Transfer-Encoding: chunked", "transfer-encoding: CHUNKED", "Transf\u00e9r-Encoding: chunked",
  "Connection: close, Content-Length", "Connection: Transfer-Encoding", "Connection\r\u001b5eep-Alive", "Connection: keep-alive, close", "Connection: upgrade\r\nUpgrade: h2c",
  "Host: b.example", "host:b.example", "Host : b.example", " Host: b.example", "X: a\r\n Host: b.example", ": b", "X", "X a: b", "X\"Y: a", "X(Y): a", "X@Y: a", "X: \u00a0a", "X: a\u007f",
  "Expect: 100-continue", "Trailer: Content-Length", "TE: trailers", "Keep-Alive: timeout=5", "HTTP2-Settings: AAMAAABk", "Range: bytes=0-0", "Cookie: a=1\r\nCookie: b=2",
] as const; // prettier-ignore
const lines = [
  "GET / HTTP/1.1", "GET  / HTTP/1.1", "GET\t/ HTTP/1.1", "GET /\tHTTP/1.1", "GET / HTTP/1.1 ", "GET / HTTP/1.1\r", " GET / HTTP/1.1", "\r\nGET / HTTP/1.1", "GET / http/1.1",
  "GET / HTTP/1.0", "GET / HTTP/0.9", "GET / HTTP/2.0", "GET / HTTP/1.10", "GET / HTTP/01.1", "GET / HTTP/1.1x", "GET / HTTP /1.1", "GET /", "GET / RTSP/1.0", "GET / ICE/1.0", "GET / IHTTP/1.0",
  "GET / HTTP/1.1\r\n Host: b.example", "GET a HTTP/1.1", "GET http://b.example/ HTTP/1.1", "GET //b.example/ HTTP/1.1", "GET /a b HTTP/1.1", "GET /a#b HTTP/1.1", "GET /a\\b HTTP/1.1",
  "GET /a?b?c HTTP/1.1", "GET /%0d%0aX:y HTTP/1.1", "GET /%00 HTTP/1.1", "GET /\u00e4 HTTP/1.1", "GET /\u007f HTTP/1.1", "GET * HTTP/1.1", "HEAD / HTTP/1.1", "PRI * HTTP/2.0", "MGET / HTTP/1.1",
] as const; // prettier-ignore

/** Heads that others have met, in our own words: plain ones, and those in which two readers have disagreed. */
export const seeds: readonly string[] = [
  head(...browser),
  head("GET / HTTP/1.1", host),
  head("HEAD /a/b?c=d HTTP/1.1", host, "Connection: close", "Accept: */*"),
  head("GET /x HTTP/1.1", host, "Range: bytes=0-99", "Cache-Control: max-age=0"),
  head("GET / HTTP/1.1", host, "Content-Length: 4", "Transfer-Encoding: chunked"),
  head("POST / HTTP/1.1", host, "Content-Length: 0"),
  head("GET / HTTP/1.0", host, "Connection: keep-alive"),
];
/** Those in which readers have disagreed. */
export const knownSeeds: readonly string[] = [
  ...catches.map((line) => head("GET /a HTTP/1.1", host, line)),
  ...catches.map((line) => head("GET /a HTTP/1.1", line, host) + smuggled),
  ...lines.map((line) => head(line, host, "Accept: */*")),
];

const pieces = [
  "\r\n", "\n", "\r", " ", "\t", ":", "\0", ";", ",", "\x0b", "\x0c", "\x7f", "\x85", "\xa0", "\xff", "#", "//", "%00",
  "HTTP/1.1", "HTTP/1.0", "GET / ", "Host: b.example\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n",
  "Content-Length : 3\r\n", "Transfer-Encoding\t: chunked\r\n", "X:\r\n y\r\n", "Connection: close\r\n", "chunked", "0\r\n\r\n",
]; // prettier-ignore

/** Some changes, each of a few bytes. */
export function mutate(seed: string, random: () => number): string {
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

export type Scanner = (bytes: Buffer, from: number) => Scan;

export type Taken = { readonly bytes: Buffer; readonly found: PlainHead };

/** Yields the mutated heads that the scanner takes, of so many. */
export function* takenOf(
  scanner: Scanner,
  count: number,
  seed: number,
  from: readonly string[] = seeds,
): Generator<Taken> {
  const random = createRandom(seed).next;
  for (let no = 0; no < count; no++) {
    const text = mutate(from[no % from.length] ?? "", random);
    const bytes = Buffer.from(text, "latin1");
    const found = scanner(bytes, 0);
    if (found.kind === "plain") yield { bytes, found };
  }
}

/** How many of so many mutated heads are taken, and the first that node reads otherwise. */
export function compare(
  scanner: Scanner,
  count: number,
  seed: number,
  from: readonly string[] = seeds,
): { readonly taken: number; readonly fault: string | undefined } {
  let taken = 0;
  for (const { bytes, found } of takenOf(scanner, count, seed, from)) {
    taken++;
    const why = otherwiseInNode(bytes, found);
    if (why !== undefined)
      return { taken, fault: `${why}: ${JSON.stringify(bytes.toString("latin1"))}` };
  }
  return { taken, fault: undefined };
}
