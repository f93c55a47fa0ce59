// HTTP/2: a stream is a request like any other, with its verdict and its cache; and one that breaks harms no other.

import { once } from "node:events";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, host, stateOf, type Asked } from "../edge.ts";
import { askSecure, readHttp2, shake, visitByHttp2 } from "../secure-clients.ts";
import { openSecure, openSecureStage } from "../secure-stage.ts";
import { files, layManifest } from "../site-layout.ts";
import { fresh } from "../stage.ts";

test.each(["GET", "HEAD", "POST"])(
  "a status that HTTP/2 cannot carry is a failure that %s is told of, and the connection goes on",
  async (method) => {
    await using s = await openSecureStage((request, response) => {
      response.writeHead(request.url === "/odd" ? 799 : 200).end();
    });
    await using visitor = await visitByHttp2(s.port);
    expect((await visitor.ask("/odd", { method })).status).toBe(500);
    expect((await visitor.ask("/", { method })).status).toBe(200);
  },
);

describe("a request", () => {
  test("reaches the origin as it was meant, and its answer the visitor", async () => {
    const seen: unknown[] = [];
    await using s = await openSecureStage((request, response) => {
      const { method, url, headers } = request;
      const { host: named, cookie, te, via } = headers;
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.once("end", () => {
        seen.push([method, url, named, cookie, te, via, body]);
        response.writeHead(
          201,
          [
            ["Connection", "keep-alive, x-hop"],
            ["X-Hop", "ends here"],
            ["Set-Cookie", "a=1"],
            ["Set-Cookie", "b=2"],
            ["X-Kept", "Yes"],
          ].flat(),
        );
        response.end("made");
      });
    });
    await using visitor = await visitByHttp2(s.port);
    const answer = await visitor.ask("/a%20b//c?x=%41&", {
      method: "PUT",
      body: "hello",
      headers: { cookie: ["k=1", "l=2"], te: "trailers" },
    });
    expect(seen).toEqual([
      ["PUT", "/a%20b//c?x=%41&", host, "k=1; l=2", undefined, "2 accel-agent", "hello"],
    ]);
    expect([answer.status, answer.text]).toEqual([201, "made"]);
    expect(answer.headers).toMatchObject({ "set-cookie": ["a=1", "b=2"], "x-kept": "Yes" });
    for (const name of ["connection", "keep-alive", "transfer-encoding", "x-hop"])
      expect(answer.headers[name]).toBeUndefined();
  });

  test("to wait with its body is told to go on", async () => {
    await using s = await openSecureStage((request, response) => void request.pipe(response));
    await using visitor = await visitByHttp2(s.port);
    const head = { ":path": "/", ":method": "POST", expect: "100-continue" };
    const stream = visitor.begin(head, false);
    await once(stream, "continue");
    stream.end("now");
    expect((await readHttp2(stream)).text).toBe("now");
    const odd = await visitor.ask("/", { headers: { expect: "miracles" } });
    expect(odd.status).toBe(417);
  });

  test.each<[string, number, Asked & { readonly path?: string }]>([
    ["of two hosts", 400, { headers: { host: "other.example.com" } }],
    ["of a host twice", 404, { headers: { host } }],
    ["of another site", 421, { host: "other.example.com" }],
    ["of TRACE", 405, { method: "TRACE" }],
    [
      "with many fields",
      431,
      { headers: Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`x-${i}`, "1"])) },
    ],
    ["with a large header", 431, { headers: { "x-large": "x".repeat(33_000) } }],
    ["of everything", 204, { method: "OPTIONS", path: "*" }],
    [
      "in a circle",
      508,
      { headers: { via: Array.from({ length: 8 }, () => "2 accel-agent").join() } },
    ],
    ["for a file with an unread body", 405, { method: "POST", path: "/style.css", body: "x" }],
    [
      "that answers nothing to an unread body",
      204,
      { method: "OPTIONS", path: "/style.css", body: "x" },
    ],
  ])("%s is answered %d", async (_what, status, asked) => {
    using dir = tempDir();
    const { views, blobsDir } = layManifest(dir.path, "");
    await using s = await openSecure({ views, blobsDir });
    await using visitor = await visitByHttp2(s.port);
    const { path = "/none", ...rest } = asked;
    expect((await visitor.ask(path, rest)).status).toBe(status);
    // The connection serves the next one.
    expect((await visitor.ask("/style.css")).text).toBe("body{}");
  });

  test("of CONNECT is answered 405", async () => {
    await using s = await openSecure();
    await using visitor = await visitByHttp2(s.port);
    const stream = visitor.begin({ ":method": "CONNECT" }, false);
    const [head] = await once(stream, "response");
    expect(head).toMatchObject({ ":status": 405 });
  });

  test("that claims to be HTTP/2.0 in the words of HTTP/1 is none", async () => {
    await using s = await openSecure();
    const socket = await shake(s.port);
    socket.write(`GET / HTTP/2.0\r\nHost: ${host}\r\n\r\n`);
    const [chunk] = await once(socket, "data");
    expect(String(chunk)).toMatch(/^HTTP\/1\.1 505 /);
    socket.destroy();
  });
});

describe("an answer", () => {
  test("is the same over every protocol", async () => {
    using dir = tempDir();
    const { views, blobsDir } = layManifest(dir.path, "");
    await using s = await openSecure({
      views,
      blobsDir,
      site: { headers: { set: { "X-Site": "1" } } },
    });
    await using visitor = await visitByHttp2(s.port);
    const etag = String((await ask(s.edge, "/data.bin")).headers["etag"]);
    const questions = [
      ...Object.keys(files).map((path) => ({ path: `/${path.replaceAll(" ", "%20")}` })),
      { path: "/docs" },
      { path: "/docs/?a=b" },
      { path: "/none" },
      { path: "/style.css", method: "HEAD" },
      { path: "/style.css", method: "DELETE" },
      { path: "/style.css", method: "OPTIONS" },
      { path: "/data.bin", headers: { "if-none-match": etag } },
      { path: "/data.bin", headers: { range: "bytes=2-4" } },
      { path: "/data.bin", headers: { range: "bytes=70-" } },
      { path: "/big.txt", headers: { "accept-encoding": "br" } },
    ];
    await until("a variant", async () => {
      const answer = await ask(s.edge, "/big.txt", { headers: { "accept-encoding": "br" } });
      return answer.headers["content-encoding"] === "br";
    });
    for (const { path, ...asked } of questions) {
      const answers = [
        await ask(s.edge, encodeURI(decodeURI(path)), asked),
        await askSecure(s.port, encodeURI(decodeURI(path)), asked),
        await visitor.ask(encodeURI(decodeURI(path)), asked),
      ].map(({ status, headers, text }) => ({ status, text, headers: lasting(headers) }));
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
    }
  });

  test("that breaks resets its stream, and the others go on", async () => {
    await using s = await openSecureStage((request, response) => {
      if (request.url === "/good") {
        response.end("good");
        return;
      }
      response.writeHead(200, { "Content-Length": "100" }).write("half");
      setImmediate(() => response.destroy());
    });
    await using visitor = await visitByHttp2(s.port);
    await expect(visitor.ask("/bad")).rejects.toThrow(/INTERNAL_ERROR|broke off/);
    expect((await visitor.ask("/good")).text).toBe("good");
    await until("the records", () => s.edge.records.length === 2);
  });

  test("of 50 MB to a slow visitor takes bounded memory", async () => {
    const total = 50 * 2 ** 20;
    let sent = 0;
    function* pieces(): Generator<Buffer> {
      for (; sent < total; sent += 65_536) yield Buffer.alloc(65_536);
    }
    await using s = await openSecureStage((_request, response) => {
      response.writeHead(200, { "Content-Length": total, "Cache-Control": "no-store" });
      Readable.from(pieces()).pipe(response);
    });
    await using visitor = await visitByHttp2(s.port);
    const stream = visitor.begin({ ":path": "/" });
    await once(stream, "response");
    let before = -1;
    await until("rest", async () => {
      const rested = sent > 0 && sent === before;
      before = sent;
      await new Promise((after) => setTimeout(after, 200));
      return rested;
    });
    expect(sent).toBeLessThan(25 * 2 ** 20);
    // Others on the connection are served meanwhile.
    let received = 0;
    stream.on("data", (chunk: Buffer) => (received += chunk.length));
    await once(stream, "close");
    expect(received).toBe(total);
  });

  test("of many streams at once comes whole", async () => {
    await using s = await openSecureStage((request, response) => {
      response.end((request.url ?? "").repeat(5_000));
    });
    await using visitor = await visitByHttp2(s.port);
    const paths = Array.from({ length: 100 }, (_, n) => `/stream-${n}`);
    const answers = await Promise.all(paths.map(async (path) => visitor.ask(path)));
    expect(answers.map(({ text }, n) => text === (paths[n] ?? "").repeat(5_000))).toEqual(
      paths.map(() => true),
    );
  });
});

describe("the cache", () => {
  test("is one for both protocols of HTTPS, and a clear holds for both", async () => {
    await using s = await openSecureStage(fresh);
    await using visitor = await visitByHttp2(s.port);
    expect((await visitor.ask("/a")).text).toBe("v1");
    expect((await askSecure(s.port, "/a")).text).toBe("v1");
    s.edge.cache.clear(() => true);
    expect((await askSecure(s.port, "/a")).text).toBe("v2");
    expect((await visitor.ask("/a")).text).toBe("v2");
  });
});

test("a state that is published holds for the next stream of a connection", async () => {
  await using s = await openSecure({
    site: { redirects: [{ from: "/a", to: "/one", status: 302 }] },
  });
  await using visitor = await visitByHttp2(s.port);
  expect((await visitor.ask("/a")).headers["location"]).toBe("/one");
  s.edge.publish(stateOf(2, { redirects: [{ from: "/a", to: "/two", status: 302 }] }));
  expect((await visitor.ask("/a")).headers["location"]).toBe("/two");
});

/** Without what speaks of a connection or the moment. */
function lasting(headers: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const fleeting = ["connection", "keep-alive", "date", ":status", "cache-status", "age"];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !fleeting.includes(name)));
}
