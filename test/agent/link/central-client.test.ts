// The agent API as typed calls, against real sockets: what is sent, what is refused, what is cut, what is too large or too slow.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseRetryAfter, type CentralClient } from "../../../src/agent/link/central-client.ts";
import { linkRefusal } from "../../../src/agent/link/refusal.ts";
import type { FaultCode } from "../../../src/core/faults.ts";
import { FakeCentral, name16, secret16 } from "../../support/fake-central.ts";
import { clientOf, never, scripted, sha256, tokenAnswer } from "../../support/scripted-central.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("the token is asked with Basic, a form and our clock", async () => {
  await using central = await FakeCentral.start();
  await using client = clientOf(`${central.url}/`);
  await client.token();
  expect(central.requests).toEqual(["POST /agent-api/v1/token"]);
  const [headers] = central.headers;
  expect(headers?.authorization).toBe(
    `Basic ${Buffer.from(`${name16}:${secret16}`).toString("base64")}`,
  );
  expect(Math.abs(Date.parse(headers?.date ?? "") - Date.now())).toBeLessThan(5_000);
});

test("a path in central_url comes before the API's", async () => {
  await using central = await FakeCentral.start();
  await using client = clientOf(`${central.url}/behind/`);
  await client.token();
  expect(central.requests).toEqual(["POST /behind/agent-api/v1/token"]);
  expect(client.transport.channelUrl.href).toBe(
    `${central.url.replace("http", "ws")}/behind/agent-api/v1/channel`,
  );
});

test.each([
  ["http://central.example.com", false],
  ["http://10.0.0.1:8000", false],
  ["http://127.0.0.1.example.com", false],
  ["ftp://127.0.0.1", false],
  ["http://127.0.0.1:8000", true],
  ["http://[::1]:8000", true],
  ["http://localhost:8000", true],
  ["https://central.example.com", true],
])("%s may be used: %s", async (url, fine) => {
  const open = (): CentralClient => clientOf(url);
  if (fine) await expect(open()[Symbol.asyncDispose]()).resolves.toBeUndefined();
  else expect(open).toThrow(expect.objectContaining({ code: "SETTINGS_INVALID" }));
});

test.each<[number, unknown, FaultCode]>([
  [401, { code: "unknown_name", message: "m" }, "UNKNOWN_NAME16"],
  [401, { code: "wrong_secret", message: "m" }, "WRONG_SECRET16"],
  [401, { code: "clock_skew", message: "m" }, "CLOCK_SKEWED"],
  [401, { code: "site_deleted", message: "m" }, "SITE_DELETED"],
  [403, { code: "site_deleted", message: "m" }, "CENTRAL_REFUSED"],
  [401, "<h1>who are you</h1>", "CENTRAL_REFUSED"],
  [404, { code: "not_found", message: "m" }, "NOT_FOUND"],
  [400, { code: "invalid", message: "m" }, "MESSAGE_INVALID"],
  [413, { code: "too_large", message: "m" }, "MESSAGE_INVALID"],
  [429, { code: "too_many", message: "m" }, "CENTRAL_REFUSED"],
  [500, { code: "internal", message: "m" }, "CENTRAL_REFUSED"],
  [503, { code: "unavailable", message: "m" }, "CENTRAL_UNREACHABLE"],
  [502, "bad gateway", "CENTRAL_UNREACHABLE"],
  [200, { epoch: 1 }, "MESSAGE_INVALID"],
  [200, "no JSON", "MESSAGE_INVALID"],
])("%i %j is %s", async (status, body, code) => {
  await using script = await scripted((_request, response) => {
    response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await expect(script.client.getSnapshot(never)).rejects.toMatchObject({ code });
});

test("of a central whose store is away it is not the network that is to be looked at", () => {
  const body = JSON.stringify({
    code: "unavailable",
    message: "central's store cannot be had now",
  });
  expect(linkRefusal(503, body, "GET /x")).toMatchObject({
    code: "CENTRAL_UNREACHABLE",
    message: "GET /x was refused: central's store cannot be had now (503 unavailable)",
    hint: expect.stringMatching(/^Central answers, and the network to it is well/),
  });
});

test.each([
  [429, "too_many", "Nothing was taken. Wait a minute and try again; an agent that runs does so."],
  [500, "internal", "Central answered with an error; its log has the request id."],
])("a refusal with %i says what helps", (status, code, hint) => {
  const body = JSON.stringify({ code, message: "m" });
  expect(linkRefusal(status, body, "GET /x")).toMatchObject({ code: "CENTRAL_REFUSED", hint });
});

test("no message of an error holds a secret", async () => {
  await using central = await FakeCentral.start();
  central.faults.refuse = "wrong_secret";
  await using client = clientOf(central.url);
  const error: unknown = await client.getSnapshot(never).catch((thrown: unknown) => thrown);
  expect(String(error)).not.toContain(secret16);
  expect(JSON.stringify(error)).not.toContain(secret16);
});

test.each<[string, RequestListener]>([
  ["an answer that never begins", () => undefined],
  ["an answer that never ends", (_request, response) => response.write("{")],
  ["an answer that is cut", (_request, response) => response.write("{", () => response.destroy())],
  [
    "an answer that drips for ever",
    (_request, response) => {
      const drip = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(drip));
    },
  ],
])("%s is given up in time", async (_what, handler) => {
  await using script = await scripted(handler);
  const atMs = performance.now();
  await expect(script.client.getSnapshot(never)).rejects.toMatchObject({
    code: "CENTRAL_UNREACHABLE",
  });
  expect(performance.now() - atMs).toBeLessThan(20_000); // A call has a minute, unless it is told otherwise.
});

test("a long poll may take as long as it was to wait beyond what a call may, and a call may not", async () => {
  await using central = await FakeCentral.start();
  await using client = clientOf(central.url, { callTimeoutMs: 150 });
  await client.token();
  central.faults.delayMs = 400;
  const { epoch, head } = central.journal;
  const query = { instanceId: "instance-1", after: head.seq, epoch, chain: head.chain };
  await expect(client.getJournal(query, never)).rejects.toMatchObject({
    code: "CENTRAL_UNREACHABLE",
  });
  central.faults.impatient = true;
  const page = await client.getJournal({ ...query, waitMs: 60_000 }, never);
  expect(page).toMatchObject({ head_seq: head.seq, entries: [] });
});

test("an answer that is too large is refused, not stored", async () => {
  await using script = await scripted((_request, response) => response.end(Buffer.alloc(200_000)));
  await expect(script.client.getBotSet("a.example", "bad", never)).rejects.toMatchObject({
    code: "MESSAGE_INVALID",
  });
});

test("an expired token is renewed once and the call repeated, body and all", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using client = clientOf(central.url);
  const bytes = randomBytes(100_000);
  const path = join(dir.path, "file");
  writeFileSync(path, bytes);
  central.faults.tokenCalls = 1;
  await client.getSnapshot(never);
  await client.putBlob(sha256(bytes), { path, size: bytes.length }, never);
  expect(central.tokensGiven).toBe(2);
  expect(central.blobs.get(sha256(bytes))).toEqual(bytes);
  central.faults.tokenCalls = 0;
  await expect(client.getSnapshot(never)).rejects.toMatchObject({ code: "TOKEN_EXPIRED" });
  expect(central.tokensGiven).toBe(3);
});

test("request logs: every status is an answer, only silence is an error", async () => {
  const seen: string[] = [];
  let status = 200;
  await using script = await scripted((request, response) => {
    seen.push(
      ["accel-lane", "accel-first-seq", "accel-last-seq", "content-encoding"]
        .map((name) => String(request.headers[name]))
        .join(" "),
    );
    if (status === 429) response.setHeader("retry-after", "7");
    if (status === 0) response.destroy();
    else response.writeHead(status).end(JSON.stringify({ status }));
  });
  const batch = {
    instanceId: "instance-1",
    lane: "0123456789abcdef/2",
    firstSeq: 5,
    lastSeq: 9,
    encoding: "zstd" as const,
    body: Buffer.from("b"),
  };
  for (status of [200, 409, 413, 503]) {
    expect(await script.client.postRequestLogs(batch, never)).toEqual({
      status,
      answer: { status },
      retryAfterMs: undefined,
    });
  }
  status = 429;
  expect((await script.client.postRequestLogs(batch, never)).retryAfterMs).toBe(7_000);
  status = 0;
  await expect(script.client.postRequestLogs(batch, never)).rejects.toMatchObject({
    code: "CENTRAL_UNREACHABLE",
  });
  expect(seen[0]).toBe("0123456789abcdef/2 5 9 zstd");
});

test("Retry-After in seconds or as a date", () => {
  const nowMs = Date.parse("2026-01-01T00:00:00Z");
  expect(parseRetryAfter("30", nowMs)).toBe(30_000);
  expect(parseRetryAfter("Thu, 01 Jan 2026 00:00:10 GMT", nowMs)).toBe(10_000);
  expect(parseRetryAfter("Thu, 01 Jan 2025 00:00:10 GMT", nowMs)).toBe(0);
  expect(parseRetryAfter("soon", nowMs)).toBeUndefined();
  expect(parseRetryAfter(undefined, nowMs)).toBeUndefined();
});

const hasOpenssl = ((): boolean => {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test.skipIf(!hasOpenssl)(
  "TLS: a certificate of an unknown authority is refused, of the named one taken (needs openssl)",
  async () => {
    using dir = tempDir();
    const [key, certificate] = [join(dir.path, "key.pem"), join(dir.path, "cert.pem")];
    const how = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1`;
    const files = ["-keyout", key, "-out", certificate];
    execFileSync("openssl", [...how.split(" "), ...files], { stdio: "ignore" });
    const caPem = readFileSync(certificate, "utf8");
    const server = createTlsServer({ key: readFileSync(key), cert: caPem }, (_request, response) =>
      response.end(JSON.stringify(tokenAnswer)),
    );
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", () => resolve());
    await promise;
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      await using stranger = clientOf(url);
      await expect(stranger.token()).rejects.toMatchObject({
        code: "CENTRAL_UNREACHABLE",
        message: expect.stringMatching(/self-signed/),
      });
      await using known = clientOf(url, { caPem });
      expect((await known.token()).epoch).toBe("e".repeat(16));
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
);
