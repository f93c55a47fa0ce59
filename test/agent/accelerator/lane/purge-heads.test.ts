// Heads of purge requests: the lane reads them whole, where node's parser knows two of the methods not at all.

import { expect, test } from "vitest";
import { scanHead } from "../../../../src/agent/accelerator/lane/head-scanner.ts";

const host = "Host: www.example.com";
const head = (...lines: readonly string[]): string => `${lines.join("\r\n")}\r\n\r\n`;
const scan = (text: string): ReturnType<typeof scanHead> =>
  scanHead(Buffer.from(text, "latin1"), 0);

test.each(["PURGE", "BAN", "URIBAN"])("%s is read, in whatever pieces it comes", (method) => {
  const text = head(`${method} /a?b=1 HTTP/1.1`, host, "xkey: a b");
  for (let end = 0; end < text.length; end++) expect(scan(text.slice(0, end)).kind).toBe("more");
  expect(scan(`${text}GET /`)).toMatchObject({
    kind: "purge",
    method,
    url: "/a?b=1",
    hasBody: false,
    end: text.length,
    fields: [
      ["Host", "www.example.com"],
      ["xkey", "a b"],
    ],
  });
});

test.each([
  ["BAN", "Content-Length: 0", "purge"],
  ["URIBAN", "content-length: 0", "purge"],
  ["PURGE", "Content-Length: 0", "odd"],
  ["BAN", "Content-Length: 1", "odd"],
  ["BAN", "Content-Length: 00", "odd"],
  ["BAN", "Content-Length: 0\r\nContent-Length: 0", "odd"],
  ["BAN", "Transfer-Encoding: chunked", "odd"],
  ["BAN", "Content-Length: 0\r\nTransfer-Encoding: chunked", "odd"],
  ["GET", "Content-Length: 0", "odd"],
  ["BANS", "", "odd"],
  ["ban", "", "odd"],
  ["PURGEKEYS", "", "odd"],
])("%s with %j is %s", (method, field, kind) => {
  const lines = [`${method} / HTTP/1.1`, host, ...(field === "" ? [] : [field])];
  expect(scan(head(...lines)).kind).toBe(kind);
});
