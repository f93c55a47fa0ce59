// Plain heads of HTTP/2: read as core/http reads them, and plain where the same head over HTTP/1.1 is.

import { describe, expect, test } from "vitest";
import { scanHead } from "../../../../src/agent/accelerator/lane/head-scanner.ts";
import { StreamHeads } from "../../../../src/agent/accelerator/lane/stream-heads.ts";
import { readHttp2Request } from "../../../../src/core/http/http2-request.ts";
import { createRandom } from "../../../support/outside-random.ts";

const host = "www.example.com";
const start = [":method", "GET", ":scheme", "https", ":authority", host, ":path", "/a?b=c"];
const agent = "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0";
const browser = [
  ...start,
  "user-agent",
  agent,
  "accept",
  "text/html;q=0.9, */*",
  "accept-encoding",
  "gzip, br",
  "cookie",
  "a=1",
  "cookie",
  "b=2",
  "priority",
  "u=0, i",
  "if-none-match",
  '"x"',
];

const read = (...raw: readonly string[]) => new StreamHeads().read(raw);

describe("what is plain", () => {
  test("a browser's head", () => {
    expect(read(...browser)).toMatchObject({
      method: "GET",
      url: "/a?b=c",
      httpVersion: "2",
      hasBody: false,
      fields: readHttp2Request(browser).fields,
      said: { host, userAgent: agent, acceptEncoding: "gzip, br", isConditional: true },
    });
  });

  test.each([
    ["Host instead of the authority", [":method", "GET", ":scheme", "https", ":path", "/"]],
    ["Host beside the same authority", start],
  ])("%s", (_what, raw) => {
    expect(read(...raw, "host", host)?.said.host).toBe(host);
    expect(read(...raw, "host", host)?.fields).toEqual([["host", host]]);
  });

  test("te: trailers, which says nothing of an answer", () => {
    expect(read(...start, "te", "trailers")?.fields).toContainEqual(["te", "trailers"]);
  });

  test.each(["authorization", "range", "cache-control", "via"])("%s is for the pipeline", (name) =>
    expect(read(...start, name, "x")?.said.needsPipeline).toBe(true),
  );
});

test.each([
  ["another method", [":method", "POST", ":scheme", "https", ":authority", host, ":path", "/"]],
  ["another scheme", [":method", "GET", ":scheme", "http", ":authority", host, ":path", "/"]],
  ["no host", [":method", "GET", ":scheme", "https", ":path", "/"]],
  ["a target with a fragment", [":method", "GET", ":authority", host, ":path", "/#a"]],
  ["the target of everything", [":method", "GET", ":authority", host, ":path", "*"]],
  ["a long target", [":method", "GET", ":authority", host, ":path", `/${"a".repeat(2_048)}`]],
  ["another protocol", [...start, ":protocol", "websocket"]],
  ["an empty host beside another", [":method", "GET", ":path", "/", "host", "", "host", "a"]],
  ["two hosts", [...start, "host", "other.example.com"]],
  ["a length", [...start, "content-length", "0"]],
  ["an expectation", [...start, "expect", "100-continue"]],
  ["another transfer coding", [...start, "te", "gzip"]],
  ["a field of connections", [...start, "connection", "close"]],
  ["a known field twice", [...start, "range", "bytes=0-1", "range", "bytes=2-3"]],
  ["a value of other bytes", [...start, "x", "\u00e4"]],
  ["a value that ends with a space", [...start, "x", "a "]],
  ["101 fields", [...start, ...Array.from({ length: 100 }, (_, no) => [`x-${no}`, "1"]).flat()]],
  ["more than 8 KiB", [...start, "x", "x".repeat(8_192)]],
])("%s is not plain", (_what, raw) => expect(read(...raw)).toBeUndefined());

const names = [
  "user-agent",
  "accept-encoding",
  "cookie",
  "cookie",
  "host",
  "te",
  "via",
  "range",
  "x-a",
  "x-b",
  "if-none-match",
  "if-modified-since",
  "content-length",
  "cache-control",
  "x-forwarded-for",
];
const values = [
  "a",
  "b=c",
  "",
  " a",
  "a ",
  "a b",
  "a\tb",
  "trailers",
  host,
  "WWW.example.com",
  "\u00e4",
];
const paths = ["/", "/a?b=%20c", "/a", "/b#c", "*", "", "/{a}", "http://b/", "/\u00e4"];
const authorities = [host, host, host, "WWW.example.com", "", "b.example"];

type Random = () => number;

function randomHead(random: Random): readonly string[] {
  const one = (of: readonly string[]): string => of[Math.floor(random() * of.length)] ?? "";
  const authority = one(authorities);
  return [
    ":method",
    one(["GET", "GET", "HEAD", "POST"]),
    ":scheme",
    "https",
    ...(authority === "" ? [] : [":authority", authority]),
    ":path",
    random() < 0.7 ? "/a" : one(paths),
    ...Array.from({ length: Math.floor(random() * 5) }, () => [
      one(names),
      random() < 0.7 ? "a" : one(values),
    ]).flat(),
  ];
}

/** The same head over HTTP/1.1. */
function overHttp1(raw: readonly string[]): Buffer {
  const { method, target, fields } = readHttp2Request(raw);
  const lines = fields.flatMap(([name, value]) =>
    name === "te" && value === "trailers" ? [] : [`${name}: ${value}\r\n`],
  );
  return Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
}

test("200,000 random heads are plain where they are over HTTP/1.1, and say the same", () => {
  const random = createRandom(1).next;
  let taken = 0;
  const heads = new StreamHeads(); // What one remembers of the head before must not be seen.
  for (let no = 0; no < 200_000; no++) {
    const raw = randomHead(random);
    const found = heads.read(raw);
    const said = scanHead(overHttp1(raw), 0);
    // Over HTTP/1.1 blanks around a value are no part of it.
    const isBlank = readHttp2Request(raw).fields.some(([, value]) => value !== value.trim());
    if (found === undefined) {
      if (said.kind === "plain" && !isBlank) expect(raw).toBe("plain");
      continue;
    }
    taken++;
    const { method, url, fields } = found;
    const { target, ...asked } = readHttp2Request(raw);
    expect({ method, url, fields }).toEqual({ ...asked, url: target });
    if (said.kind !== "plain") throw new Error(`not plain over HTTP/1.1: ${JSON.stringify(raw)}`);
    const known = ({ host: name, userAgent, acceptEncoding, ...rest }: typeof found.said) => [
      name,
      userAgent,
      acceptEncoding,
      rest.isConditional,
      rest.needsPipeline,
      rest.isLast,
    ];
    expect(known(found.said)).toEqual(known(said.said));
  }
  expect(taken).toBeGreaterThan(30_000);
}, 120_000);

test("fields are read once while they are the same", () => {
  const heads = new StreamHeads();
  const first = heads.read(browser);
  const second = heads.read(browser.map((text) => (text === "/a?b=c" ? "/d" : text)));
  expect([first?.url, second?.url]).toEqual(["/a?b=c", "/d"]);
  expect(second?.said).toBe(first?.said);
  const third = heads.read([...browser, "x", "y"]);
  expect(third?.said).not.toBe(first?.said);
});
