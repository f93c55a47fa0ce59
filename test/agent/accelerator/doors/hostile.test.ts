// Requests that mean harm, as bytes on a socket: each is refused, recorded, and never reaches an origin.

import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import { openEdge, openOrigin, raw, type Edge, type Origin } from "../edge.ts";

type Stage = { edge: Edge; origin: Origin; asked: string[] } & AsyncDisposable;

async function stage(): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  const asked: string[] = [];
  const origin = stack.use(
    await openOrigin((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      request.resume().once("end", () => response.end("from the origin"));
    }),
  );
  const site = { backend: { urls: [origin.url], retries: 0 } };
  const edge = stack.use(await openEdge({ site }));
  return { edge, origin, asked, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

const host = "Host: www.example.com\r\n";
const post = `POST /p HTTP/1.1\r\n${host}`;

describe("refused by framing", () => {
  it.each([
    ["CL and TE", `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ["TE and CL", `${post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`, 400],
    ["two CL", `${post}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`, 400],
    ["two equal CL", `${post}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd`, 400],
    ["a list as CL", `${post}Content-Length: 4, 4\r\n\r\nabcd`, 400],
    ["a signed CL", `${post}Content-Length: +4\r\n\r\nabcd`, 400],
    ["a hexadecimal CL", `${post}Content-Length: 0x4\r\n\r\nabcd`, 400],
    ["a negative CL", `${post}Content-Length: -1\r\n\r\n`, 400],
    ["TE gzip, chunked", `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 501],
    [
      "TE twice",
      `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      [400, 501],
    ],
    ["TE xchunked", `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, [400, 501]],
    [
      "TE with a blank before the colon",
      `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["TE with a tab", `${post}Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n`, [400, 501]],
    [
      "TE in HTTP/1.0",
      `POST /p HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["a folded field", `GET /p HTTP/1.1\r\n${host}X-A: b\r\n c\r\n\r\n`, 400],
    ["bare LF", `GET /p HTTP/1.1\n${host.replace("\r", "")}\n`, 400],
    ["bare CR", `GET /p HTTP/1.1\r\n${host}X: a\rY: b\r\n\r\n`, 400],
    ["NUL in a value", `GET /p HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`, 400],
    ["a blank in the target", `GET /a b HTTP/1.1\r\n${host}\r\n`, 400],
    ["a control character in the target", `GET /a\x01b HTTP/1.1\r\n${host}\r\n`, 400],
    ["a method in lower case", `get / HTTP/1.1\r\n${host}\r\n`, 400],
    ["a TLS hello", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400],
    ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    ["HTTP/2.0", `GET / HTTP/2.0\r\n${host}\r\n`, 505],
    ["HTTP/0.9", "GET /\r\n\r\n", 505],
    ["no Host", "GET / HTTP/1.1\r\n\r\n", 400],
    ["two Hosts", `GET / HTTP/1.1\r\n${host}Host: other.example.com\r\n\r\n`, 400],
    ["two equal Hosts", `GET / HTTP/1.1\r\n${host}${host}\r\n`, 400],
    ["a Host with credentials", "GET / HTTP/1.1\r\nHost: a@www.example.com\r\n\r\n", 400],
    ["an empty Host", "GET / HTTP/1.1\r\nHost: \r\n\r\n", 400],
    ["an empty Host over HTTP/1.0", "GET / HTTP/1.0\r\nHost:\r\n\r\n", 400],
    ["a Host that is no port's", "GET / HTTP/1.1\r\nHost: www.example.com:99999\r\n\r\n", 400],
    ["a Host with a bracket", "GET / HTTP/1.1\r\nHost: www.exa<mple.com\r\n\r\n", 400],
    ["a Host with a backslash", "GET / HTTP/1.1\r\nHost: www.example.com\\\r\n\r\n", 400],
    ["a Host with half an escape", "GET / HTTP/1.1\r\nHost: www.example.com%2\r\n\r\n", 400],
    ["a Host of raw bytes", "GET / HTTP/1.1\r\nHost: www.\xfcmlaut.example\r\n\r\n", 400],
    ["an absolute form without host", `GET http:///x HTTP/1.1\r\n${host}\r\n`, 400],
    [
      "an absolute form with a bad Host beside",
      "GET http://www.example.com/ HTTP/1.1\r\nHost: a<b\r\n\r\n",
      400,
    ],
    ["a fragment", `GET /a#b HTTP/1.1\r\n${host}\r\n`, 400],
    ["a fragment behind a query", `GET /?a#b HTTP/1.1\r\n${host}\r\n`, 400],
    [
      "a fragment in the absolute form",
      `GET http://www.example.com/#b HTTP/1.1\r\n${host}\r\n`,
      400,
    ],
    ["a Host with a path", "GET / HTTP/1.1\r\nHost: www.example.com/x\r\n\r\n", 400],
    ["a target without slash", `GET x HTTP/1.1\r\n${host}\r\n`, 400],
    ["another scheme", `GET ftp://www.example.com/ HTTP/1.1\r\n${host}\r\n`, [400, 421]],
    ["a huge field", `GET / HTTP/1.1\r\n${host}X: ${"a".repeat(40_000)}\r\n\r\n`, 431],
    ["very many fields", `GET / HTTP/1.1\r\n${host}${"X: a\r\n".repeat(300)}\r\n`, 431],
    ["a method that nobody knows", `REFRESH / HTTP/1.1\r\n${host}\r\n`, 400],
    ["another one", `PURGEKEYS / HTTP/1.1\r\n${host}\r\n`, 400],
    ["a target with a fragment", `GET /a#b HTTP/1.1\r\n${host}\r\n`, 400],
    ["CONNECT", `CONNECT www.example.com:443 HTTP/1.1\r\n${host}\r\n`, 405],
  ])("%s", async (_name, bytes, expected) => {
    await using s = await stage();
    const answer = await raw(s.edge, bytes, (text) => /\r\n\r\n[\s\S]*\n$/.test(text));
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
    expect([expected].flat()).toContain(status);
    expect(answer.match(/HTTP\/1\.1 \d{3}/g)?.length).toBe(1);
    expect(s.asked).toEqual([]);
    await until("the record", () => s.edge.records.length === 1);
    expect(s.edge.records[0]).toMatchObject({ response_status: status, domain: null });
  });

  it.each(["TRACE", "PURGE"])(
    "%s is refused, and stands in the log of its domain",
    async (method) => {
      await using s = await stage();
      const asked = `${method} / HTTP/1.1\r\n${host}\r\n`;
      // The connection stays open.
      const answer = await raw(s.edge, asked, (received) => received.includes("\r\n\r\n"));
      expect(answer).toMatch(/^HTTP\/1\.1 405 /);
      expect(s.asked).toEqual([]);
      await until("the record", () => s.edge.records.length === 1);
      const domain = "www.example.com";
      expect(s.edge.records[0]).toMatchObject({ response_status: 405, domain });
    },
  );

  it.each([
    ["a bad chunk size", "zz\r\nhello\r\n0\r\n\r\n"],
    ["a chunk size with a sign", "-1\r\nhello\r\n0\r\n\r\n"],
    ["a chunk without its end", "2\r\nhello\r\n0\r\n\r\n"],
    ["LF in a chunk extension", "5;a=\nb\r\nhello\r\n0\r\n\r\n"],
    ["chunk extensions without end", `5;${"a".repeat(20_000)}\r\nhello\r\n0\r\n\r\n`],
  ])("%s, when the request is under way already", async (_name, body) => {
    await using s = await stage();
    const answer = await raw(s.edge, `${post}Transfer-Encoding: chunked\r\n\r\n${body}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.match(/HTTP\/1\.1 \d{3}/g)?.length).toBe(1);
    await until("the record", () => s.edge.records.length === 1);
    expect(s.edge.records[0]).toMatchObject({ response_status: 400, uri_path: "/p" });
  });
});

describe("smuggling", () => {
  it("of a second request behind a refused one does not work", async () => {
    await using s = await stage();
    const smuggled = `GET /admin HTTP/1.1\r\n${host}\r\n`;
    for (const framing of [
      `Content-Length: ${smuggled.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
      "Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    ]) {
      const answer = await raw(s.edge, `${post}${framing}${smuggled}`);
      expect(answer).toMatch(/^HTTP\/1\.1 (?:400|501) /);
    }
    expect(s.asked).toEqual([]);
  });

  it.each([
    ["refused before it was read", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", 421],
    ["that expects to be told to go on, without a body", "Expect: 100-continue\r\n\r\n", 421],
    ["that closes the connection", "Connection: close\r\n\r\n", 421],
    ["that is too large", `Expect: 100-continue\r\nContent-Length: ${2 ** 40}\r\n\r\n`, 413],
  ])("of a request behind one %s: it is not passed on", async (_name, rest, status) => {
    await using s = await stage();
    const name = status === 421 ? "nobody.example.com" : "www.example.com";
    const first = `POST /first HTTP/1.1\r\nHost: ${name}\r\n${rest}`;
    const second = `POST /second HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\nhi`;
    for (const pieces of [[first + second], [first, second]]) {
      const answer = await raw(s.edge, pieces);
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\nConnection: close\r\n`));
      expect(answer.match(/HTTP\/1\.1 \d{3}/g)?.length).toBe(1);
    }
    expect(s.asked).toEqual([]);
    expect(s.edge.records.map(({ response_status }) => response_status)).toEqual([status, status]);
  });

  it("of an answer: one that is under way is not mixed with the refusal of the next request", async () => {
    await using s = await stage();
    const answer = await raw(s.edge, `GET /first HTTP/1.1\r\n${host}\r\nNONSENSE\r\n\r\n`);
    expect(answer).toMatch(
      /^HTTP\/1\.1 200 OK[\s\S]*from the origin[\s\S]*HTTP\/1\.1 400 Bad Request/,
    );
    await until("both records", () => s.edge.records.length === 2);
    expect(s.edge.records.map(({ response_status }) => response_status)).toEqual([200, 400]);
  });
});

describe("who is addressed", () => {
  const get = (edge: Edge, line: string, hostField: string): Promise<string> =>
    raw(edge, `${line}\r\n${hostField}Connection: close\r\n\r\n`);

  it("by absolute form, which beats Host", async () => {
    await using s = await stage();
    const line = "GET http://www.example.com/x?y HTTP/1.1";
    expect(await get(s.edge, line, "Host: other.example.com\r\n")).toContain("from the origin");
    expect(s.asked).toEqual(["GET /x?y"]);
    const other = await get(s.edge, "GET http://other.example.com/ HTTP/1.1", host);
    expect(other).toMatch(/^HTTP\/1\.1 421 /);
    expect(other).toContain('"other.example.com"');
  });

  it("is nobody, by address: 421, or the default domain", async () => {
    await using s = await stage();
    for (const name of ["127.0.0.1:80", "[::1]", "localhost"])
      expect(await get(s.edge, "GET / HTTP/1.1", `Host: ${name}\r\n`)).toMatch(/^HTTP\/1\.1 421 /);
    const site = { backend: { urls: [s.origin.url] } };
    await using withDefault = await openEdge({ site, defaultDomain: "www.example.com" });
    for (const name of ["127.0.0.1:80", "[::1]", "localhost:8080"])
      expect(await get(withDefault, "GET / HTTP/1.1", `Host: ${name}\r\n`)).toMatch(
        /^HTTP\/1\.1 200 /,
      );
    expect(await get(withDefault, "GET / HTTP/1.0", "")).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get(withDefault, "GET / HTTP/1.1", "Host: unknown.example.com\r\n")).toMatch(
      /^HTTP\/1\.1 421 /,
    );
  });

  it("is the server itself", async () => {
    await using s = await stage();
    expect(await get(s.edge, "OPTIONS * HTTP/1.1", host)).toMatch(
      /^HTTP\/1\.1 204 [\s\S]*Allow: GET, HEAD/,
    );
  });
});
