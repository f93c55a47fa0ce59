// Real sockets, and real programs at their other end.

import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { once } from "node:events";
import { BoundSocket, connect, createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SocketCalls } from "../../src/base/socket-calls.ts";
import { freePorts } from "../support/free-ports.ts";
import { DatagramReader } from "../support/datagrams.ts";
import { tempDir } from "../support/temp-dir.ts";

const calls = new SocketCalls();

test.each(["127.0.0.1", "127.9.8.7", "0.0.0.0", "::1", "::"])(
  "the address of a socket on %s",
  (host) => {
    using bound = new BoundSocket({ host, port: 0 });
    const address = bound.address();
    const port = typeof address === "object" ? address.port : 0;
    expect(calls.addressOf(bound.fd())).toEqual({ host, port });
  },
);

test("what is no IP socket has no address", () => {
  using dir = tempDir();
  const file = openSync(join(dir.path, "file"), "w");
  expect(calls.addressOf(file)).toBeUndefined();
  closeSync(file);
  expect(calls.addressOf(file)).toBeUndefined();
});

test("who waits at a socket is taken by a descriptor of it, when another one has been closed", async () => {
  const bound = new BoundSocket({ host: "127.0.0.1", port: 0 });
  const [one, other] = [calls.duplicate(bound.fd()), calls.duplicate(bound.fd())];
  const address = bound.address();
  bound.close();
  const first = createServer().listen({ fd: one });
  await once(first, "listening");
  first.removeAllListeners("connection");
  first.close();
  await once(first, "close");
  const visitor = connect(typeof address === "object" ? address.port : 0, "127.0.0.1");
  await once(visitor, "connect"); // Nobody accepts: it waits in the queue.
  const second = createServer((socket) => socket.end("taken")).listen({ fd: other });
  const [said] = (await once(visitor, "data")) as [Buffer];
  expect(String(said)).toBe("taken");
  second.close();
});

test("listening ends for all who have the socket: who waits is returned, who comes is refused; it can begin again", async () => {
  const [port = 0] = await freePorts(1);
  using bound = new BoundSocket({ host: "127.0.0.1", port });
  const [one, other] = [calls.duplicate(bound.fd()), calls.duplicate(bound.fd())];
  const first = createServer().listen({ fd: one });
  await once(first, "listening");
  first.close();
  await once(first, "close");
  const waiting = Array.from({ length: 3 }, () => connect(port, "127.0.0.1"));
  await Promise.all(waiting.map(async (visitor) => once(visitor, "connect")));
  const accepted = calls.endListening(bound.fd());
  expect(accepted).toHaveLength(3);
  const [fault] = (await once(connect(port, "127.0.0.1"), "error")) as [Error];
  expect(fault).toMatchObject({ code: "ECONNREFUSED" });
  expect(calls.endListening(other)).toEqual([]);
  for (const fd of accepted) closeSync(fd);
  for (const visitor of waiting) visitor.destroy();
  const second = createServer((socket) => socket.end("again")).listen({ fd: other });
  await once(second, "listening");
  const [said] = (await once(connect(port, "127.0.0.1"), "data")) as [Buffer];
  expect(String(said)).toBe("again");
  second.close();
});

test("no handshake begins any more: who comes is in no queue, and is refused when listening has ended; a filter that a kill left is taken away", async () => {
  const [port = 0] = await freePorts(1);
  using bound = new BoundSocket({ host: "127.0.0.1", port });
  const own = calls.duplicate(bound.fd());
  // What is connected goes on.
  const first = createServer((socket) => socket.on("data", (asked) => socket.end(asked)));
  first.listen({ fd: own });
  await once(first, "listening");
  const early = connect(port, "127.0.0.1");
  await once(early, "connect");
  calls.endHandshakes(bound.fd());
  early.write("taken");
  const late = connect(port, "127.0.0.1");
  const fared = once(late, "error");
  const [said] = (await once(early, "data")) as [Buffer];
  expect(String(said)).toBe("taken");
  expect(calls.endListening(bound.fd())).toEqual([]);
  const [fault] = (await fared) as [Error];
  expect(fault).toMatchObject({ code: "ECONNREFUSED" });
  first.close();
  const second = createServer((socket) => socket.end("again"));
  second.listen({ fd: calls.duplicate(bound.fd()) });
  await once(second, "listening");
  calls.endHandshakes(bound.fd());
  calls.beginHandshakes(bound.fd());
  const [again] = (await once(connect(port, "127.0.0.1"), "data")) as [Buffer];
  expect(String(again)).toBe("again");
  second.close();
});

test("a program that is started inherits no descriptor that was made, nor one that is closed for it", () => {
  using bound = new BoundSocket({ host: "127.0.0.1", port: 0 });
  const made = calls.duplicate(bound.fd());
  const { stdout } = spawnSync("ls", ["/proc/self/fd"], { encoding: "utf8" });
  expect(stdout.split("\n")).not.toContain(`${made}`);
  closeSync(made);
});

test("a descriptor that is not open cannot be duplicated, and the reason is told", () => {
  const fault = { code: "DESCRIPTORS_USED_UP", message: expect.stringContaining("EBADF") };
  expect(() => calls.duplicate(987_654)).toThrow(expect.objectContaining(fault));
});

test("a datagram: sent, refused by a full queue, and to nobody", async () => {
  using dir = tempDir();
  const path = join(dir.path, "socket");
  expect(calls.send(path, "x")).toBe("failed");
  expect(calls.send(`/${"long".repeat(40)}`, "x")).toBe("failed");
  await using _deaf = await DatagramReader.at(path, false);
  const outcomes = Array.from({ length: 5_000 }, () => calls.send(path, "x"));
  expect([outcomes[0], outcomes.at(-1)]).toEqual(["sent", "full"]);
  const { length: open } = spawnSync("ls", [`/proc/${process.pid}/fd`], {
    encoding: "utf8",
  }).stdout.split("\n");
  expect(open).toBeLessThan(1_000);
});
