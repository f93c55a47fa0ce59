// Three thousand odd requests, several at a time, and broken HTTP on bare sockets: no failure inside, no hang, nothing told of the inside, every refusal as documented.

import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describedDocument } from "../../../src/central/api/http/described.ts";
import { createContract } from "../../support/api-contract.ts";
import { oddRequest } from "../../support/api-fuzz.ts";
import { describeOdd, openSender, type Sender } from "../../support/api-fuzz-run.ts";
import { makeWorld, type World } from "../../support/api-world.ts";
import { openApi, type Api } from "./api-harness.ts";

const requestsMin = 3_000;
const atOnceMax = 12;
const contract = createContract(describedDocument());

let api: Api;
let world: World;
let sender: Sender;
beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  world = await makeWorld(api, "fuzzed");
  sender = openSender(api.port, contract);
});
afterAll(async () => {
  sender[Symbol.dispose]();
  await api[Symbol.asyncDispose]();
});

test("odd requests are refused as documented", { timeout: 300_000 }, async () => {
  const statuses = new Map<number, number>();
  const operations = new Set<string>();
  let sent = 0;
  const batch = fc.array(oddRequest(contract.operations, world), {
    minLength: atOnceMax / 2,
    maxLength: atOnceMax,
  });
  const property = fc.asyncProperty(batch, async (requests) => {
    const judged = await Promise.all(requests.map(async (odd) => sender.send(odd)));
    judged.forEach(({ status, faults }, n) => {
      const odd = requests[n];
      if (odd === undefined) return;
      sent++;
      operations.add(odd.of);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect(faults, describeOdd(odd)).toEqual([]);
    });
  });
  await fc.assert(property, { numRuns: (requestsMin * 2) / atOnceMax + 1, endOnFailure: true });
  // Enough of each kind, or it showed nothing.
  expect(sent).toBeGreaterThanOrEqual(requestsMin);
  expect(operations.size).toBe(contract.operations.length);
  for (const status of [200, 201, 400, 401, 404, 405, 409, 415])
    expect([...statuses.keys()]).toContain(status);
});

const long = "x".repeat(40_000);
const host = "Host: x\r\n";
const get = "GET /presentation-api/v1/customer/ HTTP/1.1\r\n";
const post = `POST /presentation-api/v1/trial/ HTTP/1.1\r\n${host}`;
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;

/** What is sent, and the statuses of the answers; none: closed without one. */
const brokenRequests: readonly (readonly [string, string | Uint8Array, readonly number[]])[] = [
  ["no HTTP at all", "hello\r\n\r\n", [400]],
  ["a TLS greeting", Buffer.from("16030100c8010000c40303", "hex"), [400]],
  ["HTTP/2 without agreement", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]],
  ["an unknown method", `BREW / HTTP/1.1\r\n${host}\r\n`, [400]],
  ["no version", "GET /\r\n\r\n", [404]],
  ["a version that is none", `GET / HTTP/9.9\r\n${host}\r\n`, [400]],
  ["a field without a name", `${get}${host}: x\r\n\r\n`, [400]],
  ["a blank before the colon", `${get}${host}A : x\r\n\r\n`, [400]],
  ["a folded field", `${get}${host}A: x\r\n y\r\n\r\n`, [400]],
  ["a zero byte in a field", `${get}${host}A: \0\r\n\r\n`, [400]],
  ["fields that are too large", `${get}${host}A: ${long}\r\n\r\n`, [431]],
  ["a target that is too long", `GET /${long} HTTP/1.1\r\n${host}\r\n`, [431]],
  ["two lengths", `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, [400]],
  ["a length that is none", `${post}Content-Length: -1\r\n\r\n{}`, [400]],
  [
    "length and chunks",
    `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    [400],
  ],
  ["a chunk size that is none", `${chunked}zz\r\n{}\r\n0\r\n\r\n`, [400]],
  ["a chunk size without end", `${chunked}ffffffffffffffff1\r\n`, [400]],
  ["an unknown transfer coding", `${post}Transfer-Encoding: x\r\n\r\n{}`, [400]],
  ["a good request and then nonsense", `${get}${host}\r\n\x01\x02\x03\r\n\r\n`, [401, 400]],
  [
    "two requests in one packet",
    `${get}${host}\r\n${get}${host}Connection: close\r\n\r\n`,
    [401, 401],
  ],
  [
    "an expectation that is none",
    `${post}Expect: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    [417],
  ],
  [
    "an absolute target",
    `GET http://x/presentation-api/v1/customer/ HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
    [401],
  ],
  ["a tunnel", `CONNECT x:443 HTTP/1.1\r\n${host}\r\n`, []],
  ["the server as a whole", `OPTIONS * HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, [404]],
];

/** All that comes until the other side closes. */
async function sendRaw(port: number, bytes: string | Uint8Array): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
  let text = "";
  socket.setTimeout(60_000, () => socket.destroy(new Error("neither answered nor closed")));
  socket.setEncoding("latin1");
  socket.on("data", (data: string) => (text += data));
  socket.on("close", () => resolve(text));
  socket.on("error", (error: NodeJS.ErrnoException) =>
    error.code === "ECONNRESET" || error.code === "EPIPE" ? resolve(text) : reject(error),
  );
  return promise;
}

describe("broken HTTP", () => {
  test.each(brokenRequests)("%s", async (_what, bytes, statuses) => {
    const text = await sendRaw(api.port, bytes);
    const answers = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    expect(answers).toEqual(statuses);
    expect(text).not.toMatch(/\.[jt]s:\d|node_modules|HPE_/);
    if (answers.includes(400) || answers.includes(431))
      expect(text).toMatch(
        /content-type: application\/problem\+json[\s\S]*"status":4(?:00|31),"detail":"/,
      );
    expect((await api.call("GET", "/customer/", { token: world.token })).status).toBe(200);
  });

  test("a body that never comes whole holds nobody else up, and ends with its sender", async () => {
    const stalled = connect(api.port, "127.0.0.1");
    stalled.write(`${post}Content-Length: 100\r\n\r\n{`);
    const others = Array.from({ length: 20 }, async () =>
      api.call("GET", "/customer/", { token: world.token }),
    );
    for (const { status } of await Promise.all(others)) expect(status).toBe(200);
    stalled.destroy();
  });
});
