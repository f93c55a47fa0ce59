// What is said of HTTPS: redirects, HSTS, the scheme as origins see it; and how connections end.

import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { until } from "../../../support/until.ts";
import { ask, host } from "../edge.ts";
import { askSecure, ca, shake, visitByHttp2 } from "../secure-clients.ts";
import { openSecure, openSecureStage } from "../secure-stage.ts";

describe("what is said of HTTPS", () => {
  const tls = { redirect_http: true, hsts_s: 600 };

  test("redirects plain HTTP, with path and query, to the port of HTTPS", async () => {
    await using secure = await openSecure({ site: { tls }, tlsPort: 8_443 });
    const odd = await ask(secure.edge, "/a%20b?c=d&e", { host: `${host}:${secure.edge.port}` });
    expect([odd.status, odd.headers["location"]]).toEqual([
      308,
      `https://${host}:8443/a%20b?c=d&e`,
    ]);
    const usual = await ask(secure.edge, "/", { method: "POST", body: "x" });
    expect([usual.status, usual.headers["location"]]).toEqual([308, `https://${host}/`]);
    expect(usual.headers["strict-transport-security"]).toBeUndefined();
  });

  test("is said on every answer over HTTPS, in place of what others say", async () => {
    await using secure = await openSecureStage(
      (_request, response) => {
        response.setHeader("Strict-Transport-Security", "max-age=1");
        response.end("from the origin");
      },
      { site: { tls } },
    );
    await using visitor = await visitByHttp2(secure.port);
    for (const answer of [await askSecure(secure.port, "/"), await visitor.ask("/")])
      expect([answer.text, answer.headers["strict-transport-security"]]).toEqual([
        "from the origin",
        "max-age=600",
      ]);
  });

  test("is left to the origin where the site says nothing", async () => {
    await using secure = await openSecureStage((_request, response) => {
      response.setHeader("Strict-Transport-Security", "max-age=1");
      response.end();
    });
    const answer = await askSecure(secure.port, "/");
    expect(answer.headers["strict-transport-security"]).toBe("max-age=1");
  });

  test("follows a trusted proxy's word, not a visitor's", async () => {
    const options = { site: { tls }, trusted: ["127.0.0.1"] };
    await using proxied = await openSecure({ certificates: [], ...options });
    const headers = { "x-forwarded-proto": "https" };
    const secure = await ask(proxied.edge, "/", { headers });
    expect([secure.status, secure.headers["strict-transport-security"]]).toEqual([
      404,
      "max-age=600",
    ]);
    await using direct = await openSecure({ certificates: [], site: { tls } });
    expect((await ask(direct.edge, "/", { headers })).status).toBe(308);
  });
});

describe("an origin", () => {
  test("is told the scheme, and its answers are kept apart by it", async () => {
    const asked: unknown[] = [];
    await using secure = await openSecureStage((request, response) => {
      const { "x-forwarded-proto": proto, "x-forwarded-host": named, via } = request.headers;
      asked.push([proto, named, via]);
      response.setHeader("Cache-Control", "max-age=60");
      response.end(`for ${String(proto)}`);
    });
    await using visitor = await visitByHttp2(secure.port);
    expect((await ask(secure.edge, "/")).text).toBe("for http");
    expect((await askSecure(secure.port, "/")).text).toBe("for https");
    // HTTP/2 and HTTP/1.1 are one.
    expect((await visitor.ask("/")).headers["cache-status"]).toMatch(/hit/);
    expect((await ask(secure.edge, "/")).headers["cache-status"]).toMatch(/hit/);
    expect(asked).toEqual([
      ["http", host, "1.1 accel-agent"],
      ["https", host, "1.1 accel-agent"],
    ]);
  });
});

describe("draining", () => {
  test("ends idle connections, and answers who is on the way", async () => {
    await using secure = await openSecure();
    const idle = await shake(secure.port, { ALPNProtocols: ["http/1.1"] });
    idle.resume();
    const closed = once(idle, "close");
    await until("the connection", () => secure.edge.openConnections === 1);
    await secure.edge.drain(5_000);
    await closed;
    await expect(shake(secure.port, { ca })).rejects.toThrow(/ECONNREFUSED/);
  });

  test("cuts who does not shake hands", async () => {
    await using secure = await openSecure();
    const silent = connect(secure.port, "127.0.0.1");
    silent.on("error", () => {});
    await once(silent, "connect");
    const closed = once(silent, "close");
    silent.resume();
    await secure.edge.drain(300);
    await closed;
    expect(secure.edge.openConnections).toBe(0);
  });
});
