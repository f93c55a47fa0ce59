// Between visitor and origin: what is forwarded, what ends here, and what visitors see when an origin fails.

import type { IncomingMessage, RequestListener } from "node:http";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  ask,
  openEdge,
  openOrigin,
  raw,
  type Edge,
  type EdgeOptions,
  type Origin,
} from "../edge.ts";

type Backend = Omit<NonNullable<SiteInput["backend"]>, "urls">;

async function stage(
  handler: RequestListener,
  options: { backend?: Backend; site?: SiteInput; edge?: EdgeOptions } = {},
): Promise<{ edge: Edge; origin: Origin } & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  const origin = stack.use(await openOrigin(handler));
  const site: SiteInput = {
    ...options.site,
    backend: { urls: [origin.url], retries: 0, ...options.backend },
  };
  const edge = stack.use(await openEdge({ ...options.edge, site }));
  return { edge, origin, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

/** Echoes what arrived. */
const echo: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.once("end", () => {
    const { method, url, headers } = request;
    response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
  });
};

type Echo = { method: string; url: string; headers: Record<string, string>; body: string };
const echoed = (text: string): Echo => JSON.parse(text) as Echo; // What the handler above writes.

async function closedPort(): Promise<number> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<number>();
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    server.close(() => resolve(address !== null && typeof address === "object" ? address.port : 0));
  });
  return promise;
}

describe("what an origin sees", () => {
  it("is the request as sent, without what ends here", async () => {
    await using s = await stage(echo);
    const answer = await ask(s.edge, "/a%20b//c/../d?x=%41&&y", {
      method: "PUT",
      body: "hello",
      headers: {
        connection: "close, x-hop",
        "x-hop": "1",
        "x-kept": "2",
        te: "trailers",
        "proxy-authorization": "secret",
        "x-forwarded-for": "6.6.6.6",
        "x-forwarded-proto": "https",
        "x-forwarded-prefix": "/evil",
        forwarded: "for=6.6.6.6",
        "x-real-ip": "6.6.6.6",
      },
    });
    const { method, url, headers, body } = echoed(answer.text);
    expect([method, url, body]).toEqual(["PUT", "/a%20b//c/../d?x=%41&&y", "hello"]);
    expect(headers).toMatchObject({
      host: "www.example.com",
      "content-length": "5",
      "x-kept": "2",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": "www.example.com",
      via: "1.1 accel-agent",
    });
    for (const name of [
      "x-hop",
      "te",
      "proxy-authorization",
      "x-forwarded-prefix",
      "forwarded",
      "x-real-ip",
    ])
      expect(headers[name]).toBeUndefined();
    expect(answer.headers["cache-status"]).toBe("accel-agent; fwd=method");
  });

  it("of the visitor is what a trusted proxy says", async () => {
    await using s = await stage(echo, { edge: { trusted: ["127.0.0.0/8"] } });
    const headers = {
      "x-forwarded-for": "6.6.6.6, 203.0.113.9",
      "x-forwarded-proto": "https",
      via: "1.0 fred",
    };
    const seen = echoed((await ask(s.edge, "/", { headers })).text).headers;
    expect(seen).toMatchObject({
      "x-forwarded-for": "6.6.6.6, 203.0.113.9, 127.0.0.1",
      "x-forwarded-proto": "https",
      via: "1.0 fred, 1.1 accel-agent",
    });
    await until("the record", () => s.edge.records.length === 1);
    expect(s.edge.records[0]?.client_ip).toBe("203.0.113.9");
  });

  it("of the host is our name for it, with the port that was connected to and no other", async () => {
    await using s = await stage(echo);
    const hostSeen = async (host: string): Promise<string | undefined> =>
      echoed((await ask(s.edge, "/", { host })).text).headers["host"];
    expect(await hostSeen("WWW.Example.Com.")).toBe("www.example.com");
    expect(await hostSeen(`www.example.com:${s.edge.port}`)).toBe(`www.example.com:${s.edge.port}`);
    expect(await hostSeen("www.example.com:9999")).toBe("www.example.com");
  });

  it("of the host may be given", async () => {
    await using s = await stage(echo, { backend: { host: "inner.example.net" } });
    const { headers } = echoed((await ask(s.edge, "/")).text);
    expect([headers["host"], headers["x-forwarded-host"]]).toEqual([
      "inner.example.net",
      "www.example.com",
    ]);
  });

  it("is a body of any framing, and the interim answer that the visitor waits for", async () => {
    await using s = await stage(echo);
    const head = "POST /a HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n";
    const chunked = await raw(
      s.edge,
      `${head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
    );
    expect(chunked).toContain('"body":"abcde"');
    const expecting = await raw(
      s.edge,
      `${head}Content-Length: 2\r\nExpect: 100-continue\r\n\r\nhi`,
    );
    expect(expecting).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    expect(expecting).toContain('"body":"hi"');
    const odd = await raw(s.edge, `${head}Content-Length: 2\r\nExpect: miracles\r\n\r\nhi`);
    expect(odd).toMatch(/^HTTP\/1.1 417 /);
  });

  it("is never a circle", async () => {
    await using s = await stage(echo);
    const via = Array.from({ length: 8 }, () => "1.1 accel-agent").join(", ");
    expect((await ask(s.edge, "/", { headers: { via } })).status).toBe(508);
  });
});

describe("what is no file", () => {
  it("is the origin's to answer, and so is what is not read", async () => {
    using dir = tempDir();
    writeFileSync(`${dir.path}/page.html`, "a file");
    await using origin = await openOrigin(echo);
    const site = { backend: { urls: [origin.url] }, single_page: "page.html" };
    await using edge = await openEdge({ site, views: { kind: "directory", root: dir.path } });
    expect((await ask(edge, "/page.html")).text).toBe("a file");
    expect(echoed((await ask(edge, "/other")).text).url).toBe("/other");
    expect(echoed((await ask(edge, "/page.html", { method: "POST" })).text).method).toBe("POST");
    expect(echoed((await ask(edge, "/page.html", { method: "OPTIONS" })).text).url).toBe(
      "/page.html",
    );
  });
});

describe("bodies that are too large", () => {
  const site: SiteInput = { limits: { body_bytes_max: 10 } };

  it.each([
    ["by their stated length", "Content-Length: 11\r\nConnection: close\r\n\r\n01234567890"],
    [
      "as they come",
      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
    ],
    ["without end", `Transfer-Encoding: chunked\r\n\r\n${"5\r\n01234\r\n".repeat(20)}`],
  ])("%s: 413", async (_name, rest) => {
    await using s = await stage(echo, { site });
    const answer = await raw(
      s.edge,
      `POST / HTTP/1.1\r\nHost: www.example.com\r\n${rest}`,
      (text) => text.includes("10 bytes at most"),
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });

  it("and the next request on the connection is answered", async () => {
    await using s = await stage(echo, { site });
    const answer = await raw(
      s.edge,
      "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 11\r\n\r\n01234567890GET /next HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 [\s\S]*HTTP\/1.1 200 OK[\s\S]*"url":"\/next"/);
  });

  it("are fine at the limit", async () => {
    await using s = await stage(echo, { site });
    expect((await ask(s.edge, "/", { method: "POST", body: "0123456789" })).status).toBe(200);
  });
});

describe("an origin that fails", () => {
  it("unreachable: 502 without inner names", async () => {
    const port = await closedPort();
    await using edge = await openEdge({
      site: { backend: { urls: [`http://127.0.0.1:${port}`] } },
    });
    const answer = await ask(edge, "/");
    expect(answer.status).toBe(502);
    expect(answer.text).not.toMatch(/127\.0\.0\.1|ECONN|at /);
  });

  it("silent: 504", async () => {
    await using s = await stage(() => {}, { backend: { response_timeout_s: 0.1 } });
    expect((await ask(s.edge, "/")).status).toBe(504);
  });

  it("silent in the middle: the answer breaks", async () => {
    await using s = await stage((_q, r) => void r.writeHead(200).write("begin"), {
      backend: { idle_timeout_s: 0.1 },
    });
    await expect(ask(s.edge, "/")).rejects.toThrow(/aborted|socket hang up|ECONNRESET/);
  });

  it("that speaks no HTTP: 502", async () => {
    await using s = await stage((q) => void q.socket.end("220 mail.example.com ESMTP\r\n"));
    expect((await ask(s.edge, "/")).status).toBe(502);
  });

  it("with interim answers is waited for", async () => {
    await using s = await stage((_q, r) => {
      r.writeEarlyHints({ link: "</a.css>; rel=preload" });
      r.end("final");
    });
    expect(await ask(s.edge, "/")).toMatchObject({ status: 200, text: "final" });
  });

  it("hands over to the next of its URLs, also with a body", async () => {
    await using s = await stage(echo);
    const down = `http://127.0.0.1:${await closedPort()}`;
    await using edge = await openEdge({
      site: { backend: { urls: [down, s.origin.url], retries: 0 } },
    });
    const post = await ask(edge, "/", { method: "POST", body: "kept" });
    expect(echoed(post.text).body).toBe("kept");
    expect((await ask(edge, "/")).status).toBe(200);
  });

  it("is asked again for what is safe to repeat, and only for that", async () => {
    const asked: IncomingMessage[] = [];
    await using s = await stage(
      (q, r) => {
        asked.push(q);
        if (asked.length % 2 === 1) q.socket.destroy();
        else r.end("second");
      },
      { backend: { retries: 1 } },
    );
    expect(await ask(s.edge, "/")).toMatchObject({ status: 200, text: "second" });
    expect((await ask(s.edge, "/", { method: "POST" })).status).toBe(502);
    expect(asked.length).toBe(3);
  });
});
