// What `bench serve` measures with: its visitors, its count of the processor, its interval.

import { createServer, type AddressInfo, type Server } from "node:net";
import { expect, test } from "vitest";
import { cases } from "../bench/serving/cases.ts";
import { cpuOf, cpuSince, residentMiB } from "../bench/serving/cpu.ts";
import { askAtPace, askInLoop, Connection } from "../bench/serving/load.ts";
import { medianWithInterval } from "../bench/support/interval.ts";

async function listening(server: Server): Promise<AsyncDisposable & { readonly port: number }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    port: (server.address() as AddressInfo).port, // A TCP server that listens has one.
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

/** Answers each request with `pieces`, one after the other. */
const answering = (...pieces: readonly string[]): Server =>
  createServer((socket) => {
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    const send = ([piece, ...rest]: readonly string[]): void => {
      if (piece === undefined) return;
      socket.write(piece);
      setImmediate(send, rest);
    };
    socket.on("data", () => send(pieces));
  });

const request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

test.each<readonly [string, readonly string[]]>([
  ["whole", ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"]],
  ["in pieces", ["HTTP/1.1 20", "0 OK\r\ncontent-length:5\r\n", "\r\nhe", "llo"]],
  ["empty", ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]],
])("an answer that comes %s is counted once", async (_how, pieces) => {
  await using server = await listening(answering(...pieces));
  const connection = await Connection.open(server, 200);
  for (let asked = 0; asked < 2; asked++)
    await expect(connection.ask(request)).resolves.toBe(undefined);
  connection.close();
});

test.each<readonly [string, string, RegExp]>([
  ["another status", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", /502 Bad Gateway/],
  ["no length", "HTTP/1.1 200 OK\r\n\r\n", /without Content-Length/],
])("%s fails the round", async (_what, answer, said) => {
  await using server = await listening(answering(answer));
  const connection = await Connection.open(server, 200);
  await expect(connection.ask(request)).rejects.toThrow(said);
  connection.close();
});

test("a 304 has no body, whatever length it names", async () => {
  await using server = await listening(
    answering("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
  );
  const connection = await Connection.open(server, 304);
  for (let asked = 0; asked < 2; asked++)
    await expect(connection.ask(request)).resolves.toBe(undefined);
  connection.close();
});

test("a loop and a pace ask as often as they say", async () => {
  let asked = 0;
  const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () => void (asked++, socket.write(answer)));
  });
  await using at = await listening(server);
  const options = { target: at, requests: () => request, status: 200, connections: 2 };
  const { requests } = await askInLoop({ ...options, seconds: 0.05, first: request });
  expect(requests).toBeGreaterThan(0);
  expect(asked).toBe(requests + 2); // The first of each connection is not counted.
  asked = 0;
  expect(await askAtPace({ ...options, seconds: 0.05, perSecond: 400 })).toHaveLength(20);
  expect(asked).toBe(20);
});

test("the processor's time of this process grows with its work", () => {
  const before = cpuOf(process.pid);
  const from = process.cpuUsage();
  let sum = 0;
  while (process.cpuUsage(from).user < 20_000) sum += Math.sqrt(sum + 1);
  expect(sum).toBeGreaterThan(0);
  expect(cpuSince(before, process.pid)).toBeGreaterThan(15_000);
  expect(residentMiB(process.pid)).toBeGreaterThan(10);
});

test("the interval holds the median with at least 95 %", () => {
  const nine = [9, 1, 8, 2, 7, 3, 6, 4, 5];
  // The second and the eighth of nine: 96.1 % by the binomial distribution; the third and the seventh would be 82 %.
  expect(medianWithInterval(nine)).toEqual({ median: 5, from: 2, to: 8 });
  expect(medianWithInterval([3, 1, 2])).toEqual({ median: 2, from: 1, to: 3 });
  expect(medianWithInterval([1, 2, 3, 4])).toMatchObject({ median: 2.5 });
});

test("every case has a name of its own and wants at most what it aims at", () => {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  expect(cases.filter(({ required, aimedAt }) => required > aimedAt)).toEqual([]);
});
