// The scanner of plain heads beside node's own parser: what it takes, both read alike; and whatever way the bytes come in, it says the same.

import { describe, expect, test } from "vitest";
import {
  scanHead,
  type PlainFields,
  type PlainHead,
  type Scan,
} from "../../../../src/agent/accelerator/lane/head-scanner.ts";
import { createRandom } from "../../../support/outside-random.ts";
import { browser, compare, head, host, mutate, seeds, type Scanner } from "./head-fuzz.ts";

const scan = (text: string): Scan => scanHead(Buffer.from(text, "latin1"), 0);
const plain = (text: string): PlainHead => {
  const found = scan(text);
  if (found.kind !== "plain") throw new Error(`${found.kind}: ${JSON.stringify(text)}`);
  return found;
};

describe("what is plain", () => {
  test("is read whole", () => {
    const text = head(...browser);
    const found = plain(text);
    expect(found).toMatchObject({
      method: "GET",
      url: "/assets/app-3f2a.css?v=7&x=%20a",
      said: { host: "www.example.com", isLast: false, needsPipeline: false },
      end: text.length,
    });
    expect(found.fields.map(([name, value]) => `${name}: ${value}`)).toEqual(browser.slice(1));
  });

  test("begins wherever it is told, and ends before what follows", () => {
    const text = head("HEAD / HTTP/1.1", host);
    const bytes = Buffer.from(`xyz${text}GET /next`, "latin1");
    expect(scanHead(bytes, 3)).toMatchObject({ method: "HEAD", end: 3 + text.length });
  });

  test.each([
    ["without blanks around a value", "X:a", "a"],
    ["with blanks around a value", "X: \t a b\t \t", "a b"],
    ["an empty value", "X:", ""],
    ["a value of blanks", "X:  \t", ""],
    ["every sign of a name", "!#$%&'*+-.^_`|~09AZaz: v", "v"],
    ["a long value", `X: ${"y".repeat(7_000)}`, "y".repeat(7_000)],
  ])("%s", (_name, line, value) => {
    expect(plain(head("GET / HTTP/1.1", host, line)).fields[1]?.[1]).toBe(value);
  });

  test("a connection that ends, and one that goes on", () => {
    expect(plain(head("GET / HTTP/1.1", host, "connection: Close")).said.isLast).toBe(true);
    expect(plain(head("GET / HTTP/1.1", host, "Connection: Keep-Alive")).said.isLast).toBe(false);
  });

  test.each([
    "Range: bytes=0-1",
    "Authorization: Basic eDp5",
    "Cache-Control: no-cache",
    "Via: 1.1 p",
  ])("%s is for the pipeline", (line) =>
    expect(plain(head("GET / HTTP/1.1", host, line)).said.needsPipeline).toBe(true),
  );

  test("so many fields and no more", () => {
    const lines = (count: number): string[] => Array.from({ length: count }, (_, i) => `X-${i}: a`);
    expect(plain(head("GET / HTTP/1.1", host, ...lines(99))).fields).toHaveLength(100);
    expect(scan(head("GET / HTTP/1.1", host, ...lines(100))).kind).toBe("odd");
  });

  test("a target of so many bytes and no more", () => {
    const target = (bytes: number): string => head(`GET /${"a".repeat(bytes - 1)} HTTP/1.1`, host);
    expect(plain(target(2_048)).url).toHaveLength(2_048);
    expect(scan(target(2_049)).kind).toBe("odd");
    expect(scan(target(2_049).slice(0, 2_100)).kind).toBe("odd");
  });
});

describe("what is odd", () => {
  test.each([
    ["another method", head("POST / HTTP/1.1", host)],
    ["a method in lower case", head("get / HTTP/1.1", host)],
    ["a method that begins like one", head("GETS / HTTP/1.1", host)],
    ["no version", "GET /\r\n\r\n"],
    ["an older version", head("GET / HTTP/1.0", host)],
    ["another protocol", head("GET / RTSP/1.0", host)],
    ["a newer version", head("GET / HTTP/1.2", host)],
    ["two blanks", head("GET  / HTTP/1.1", host)],
    ["a blank at the end of the line", head("GET / HTTP/1.1 ", host)],
    ["the absolute form", head("GET http://a.example/ HTTP/1.1", host)],
    ["the asterisk form", head("GET * HTTP/1.1", host)],
    ["an empty line before it", `\r\n${head("GET / HTTP/1.1", host)}`],
    ["no Host", head("GET / HTTP/1.1", "X: a")],
    ["an empty Host", head("GET / HTTP/1.1", "Host:")],
    ["two Hosts", head("GET / HTTP/1.1", host, host)],
    ["two cookies", head("GET / HTTP/1.1", host, "Cookie: a=1", "Cookie: b=2")],
    ["a folded field", head("GET / HTTP/1.1", host, "X: a", " b")],
    ["a blank before the colon", head("GET / HTTP/1.1", host, "X : a")],
    ["a field without a name", head("GET / HTTP/1.1", host, ": a")],
    ["a field without a colon", head("GET / HTTP/1.1", host, "X a")],
    ["line feeds alone", "GET / HTTP/1.1\nHost: a.example\n\n"],
    ["a line feed alone in a field", "GET / HTTP/1.1\r\nHost: a.example\nX: a\r\n\r\n"],
    ["a carriage return alone", "GET / HTTP/1.1\r\nHost: a.example\rX: a\r\n\r\n"],
    ["Connection: Upgrade", head("GET / HTTP/1.1", host, "Connection: Upgrade")],
    ["Connection with a name", head("GET / HTTP/1.1", host, "Connection: close, X-A")],
    ["more than 8 KiB", head("GET / HTTP/1.1", host, `X: ${"y".repeat(8_192)}`)],
  ])("%s", (_name, text) => expect(scan(text).kind).toBe("odd"));

  test.each([
    "Content-Length: 0",
    "Transfer-Encoding: chunked",
    "Upgrade: h2c",
    "Expect: 100-continue",
    "TE: trailers",
    "Trailer: X",
    "Keep-Alive: 5",
    "Proxy-Connection: close",
    "HTTP2-Settings: AAMAAABk",
  ])("%s", (line) => {
    expect(scan(head("GET / HTTP/1.1", host, line)).kind).toBe("odd");
    expect(scan(head("GET / HTTP/1.1", line.toUpperCase(), host)).kind).toBe("odd");
  });

  test("every byte outside the grammar, in a target, a name and a value", () => {
    for (let code = 0; code < 256; code++) {
      const sign = String.fromCodePoint(code);
      const isVisible = code > 0x20 && code < 0x7f;
      const mayTarget = isVisible && !'"#<>\\^`{|}'.includes(sign);
      const mayName = /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(sign);
      const mayValue = isVisible || sign === " " || sign === "\t";
      const kinds = [
        scan(head(`GET /a${sign}b HTTP/1.1`, host)).kind,
        scan(head("GET / HTTP/1.1", host, `X${sign}Y: a`)).kind,
        scan(head("GET / HTTP/1.1", host, `X: a${sign}b`)).kind,
      ];
      // A colon ends the name: what follows is the value.
      const due = [mayTarget, mayName || sign === ":", mayValue].map((may) =>
        may ? "plain" : "odd",
      );
      expect(kinds, `byte ${code}`).toEqual(due);
    }
  });
});

test("every beginning of a plain head is more, and what can become none is odd at once", () => {
  const text = head(...browser);
  for (let to = 0; to < text.length; to++)
    expect(scan(text.slice(0, to)).kind, `${to}`).toBe("more");
  for (const text of [
    "PO",
    "GX",
    "GET x",
    "GET / X",
    "GET / HTTP/2",
    "GET / HTTP/1.1\r\n :",
    "GET /\r",
  ])
    expect(scan(text).kind, text).toBe("odd");
  expect(scan(`GET / HTTP/1.1\r\nX: ${"y".repeat(8_192)}`).kind).toBe("odd");
});

test("300,000 mutated heads: node reads none otherwise that is taken", { timeout: 120_000 }, () => {
  const { taken, fault } = compare(scanHead, 300_000, 1);
  expect(fault).toBeUndefined();
  expect(taken).toBeGreaterThan(30_000);
});

test("100,000 mutated heads, beside fields that are remembered", { timeout: 120_000 }, () => {
  const earlier = seeds.map(scan).flatMap((found) => (found.kind === "plain" ? found.said : []));
  let [asked, again] = [0, 0];
  const remembering: Scanner = (bytes, from) => {
    const known = earlier[asked++ % earlier.length];
    const found = scanHead(bytes, from, known);
    if (found.kind === "plain" && found.said === known) again++;
    return found;
  };
  expect(compare(remembering, 100_000, 4).fault).toBeUndefined();
  expect(again).toBeGreaterThan(400);
});

test(
  "200,000 mutated request lines before remembered fields are read as without them",
  { timeout: 120_000 },
  () => {
    const random = createRandom(5).next;
    const fields = "\r\nHost: www.example.com\r\nUser-Agent: x\r\n\r\n";
    const first = scan(`GET / HTTP/1.1${fields}`);
    const known = first.kind === "plain" ? first.said : undefined;
    let [taken, again] = [0, 0];
    for (let no = 0; no < 200_000; no++) {
      const line = mutate(
        no % 3 === 0 ? "HEAD /a HTTP/1.1" : `GET /path/${no}?q=%20 HTTP/1.1`,
        random,
      );
      const behind = no % 2 === 0 ? "" : `GET /next HTTP/1.1${fields}`;
      const bytes = Buffer.from(line + fields + behind, "latin1");
      const from = no % 5 === 0 ? 1 : 0;
      const [remembered, without] = [scanHead(bytes, from, known), scanHead(bytes, from)];
      if (remembered.kind === "plain" && without.kind === "plain") {
        taken++;
        if (remembered.said === known) again++;
        const { method, url, end } = without;
        expect(remembered).toMatchObject({ method, url, end, fields: without.fields });
      } else expect(remembered.kind, JSON.stringify(line)).toBe(without.kind);
    }
    expect(taken).toBeGreaterThan(10_000);
    expect(again).toBeGreaterThan(10_000);
  },
);

test.each<[string, Scanner]>([
  [
    "a scanner that takes line feeds alone for ends of lines",
    (bytes, from) => {
      const text = bytes.toString("latin1").replaceAll(/\r?\n/g, "\r\n");
      const found = scanHead(Buffer.from(text, "latin1"), from);
      return found.kind === "plain" ? { ...found, end: bytes.length } : found;
    },
  ],
  [
    "a scanner that remembers fields that are not the same",
    (() => {
      let known: PlainFields | undefined;
      return (bytes, from) => {
        const found = scanHead(bytes, from);
        if (found.kind !== "plain") return found;
        const { fields } = (known ??= found.said);
        return { ...found, fields };
      };
    })(),
  ],
  [
    "a scanner that passes over a length",
    (bytes, from) => {
      const text = bytes.toString("latin1").replace(/content-length/i, "content-lengtx");
      return scanHead(Buffer.from(text, "latin1"), from);
    },
  ],
])("%s is found out", { timeout: 120_000 }, (_name, scanner) => {
  expect(compare(scanner, 100_000, 2).fault).toBeDefined();
});

test("every split of a head into two and three reads says the same", () => {
  const random = createRandom(3).next;
  const texts = [
    ...seeds,
    ...Array.from({ length: 40 }, (_, no) => mutate(seeds[no % 4] ?? "", random)),
  ];
  for (const text of texts) {
    const whole = scan(text);
    const cut = (to: number): string => text.slice(0, to);
    for (let to = 0; to < text.length; to++) {
      const early = scan(cut(to));
      // What is known early must be so in the end; a head that is plain is complete.
      if (early.kind === "odd") expect(whole.kind, JSON.stringify(cut(to))).toBe("odd");
      if (early.kind === "plain") expect(whole).toEqual(early);
    }
  }
});
