// The sockets of visitors are found before anybody listens: kept ones, free ones that differ, and a reason where there is none.

import { closeSync } from "node:fs";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import {
  VisitorSockets,
  type SocketKeeping,
} from "../../../../src/agent/accelerator/pool/visitor-sockets.ts";
import { SocketCalls } from "../../../../src/base/socket-calls.ts";

const host = "127.0.0.1";
const free = { host, port: 0 };
const calls = new SocketCalls();
const bare: SocketKeeping = { calls };

test("two free ports are found, and are free again afterwards", async () => {
  const sockets = await VisitorSockets.open({ listen: free, tlsListen: free }, bare);
  const { listen, tlsListen } = sockets;
  expect(listen.port).toBeGreaterThan(0);
  expect(tlsListen?.port).toBeGreaterThan(0);
  expect(tlsListen?.port).not.toBe(listen.port);
  sockets[Symbol.dispose]();
  sockets[Symbol.dispose]();
  using again = await VisitorSockets.open({ listen, tlsListen }, bare);
  expect([again.listen, again.tlsListen]).toEqual([listen, tlsListen]);
  using plain = await VisitorSockets.open({ listen: free }, bare);
  expect(plain.tlsListen).toBeNull();
});

test("a host by its name is listened on, and stays the name", async () => {
  using sockets = await VisitorSockets.open({ listen: { host: "localhost", port: 0 } }, bare);
  expect(sockets.listen).toEqual({ host: "localhost", port: expect.any(Number) });
});

test("a port that another one holds is named, as is an address that is not of this host", async () => {
  const other = createServer();
  other.listen(0, host);
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const taken = { code: "PORT_TAKEN", message: `${host}:${port} is in use by another process` };
  const open = async (listen: object, tlsListen: object | null = null) =>
    VisitorSockets.open({ listen, tlsListen } as Parameters<typeof VisitorSockets.open>[0], bare);
  await expect(open({ host, port })).rejects.toMatchObject(taken);
  await expect(open(free, { host, port })).rejects.toMatchObject(taken);
  await expect(open({ host: "203.0.113.7", port: 8_080 })).rejects.toMatchObject({
    code: "ADDRESS_UNUSABLE",
    message: expect.stringContaining("cannot listen on 203.0.113.7:8080: "),
  });
  await expect(open({ host: "nobody.invalid", port: 8_080 })).rejects.toMatchObject({
    code: "ADDRESS_UNUSABLE",
    message: expect.stringContaining("cannot listen on nobody.invalid:8080: "),
  });
  other.close();
  await once(other, "close");
  using sockets = await open({ host, port });
  expect(sockets.listen.port).toBe(port);
});

test("a kept socket is taken instead of a new one; what is new is kept, and the rest is closed", async () => {
  using before = await VisitorSockets.open({ listen: free }, bare);
  const { plain: fd } = before.lend();
  const told: unknown[] = [];
  const kept = {
    take: (address: object) =>
      JSON.stringify(address) === JSON.stringify(before.listen) ? fd : undefined,
    keep: async (address: object) => void told.push(address),
    closeRest: async () => ["the rest"],
    holdsAny: true,
  };
  using sockets = await VisitorSockets.open(
    { listen: before.listen, tlsListen: free },
    { calls, kept },
  );
  expect(sockets.listen).toEqual(before.listen);
  expect(sockets.closed).toEqual(["the rest"]);
  await sockets.keep();
  expect(told).toEqual([sockets.tlsListen]);
});

test("another address at the same port: the one that was kept is closed first, however late that is", async () => {
  const before = await VisitorSockets.open({ listen: { host: "0.0.0.0", port: 0 } }, bare);
  const { port } = before.listen;
  const server = createServer().listen({ fd: before.lend().plain });
  await once(server, "listening");
  const kept = {
    take: () => undefined,
    keep: async () => undefined,
    // systemd does so when it has read the message.
    closeRest: async () => {
      setTimeout(() => {
        server.close();
        before[Symbol.dispose]();
      }, 100);
      return [`0.0.0.0:${port}`];
    },
    holdsAny: true,
  };
  using sockets = await VisitorSockets.open({ listen: { host, port } }, { calls, kept });
  expect([sockets.listen, sockets.closed]).toEqual([{ host, port }, [`0.0.0.0:${port}`]]);
});

test("nothing is lent after the end: its numbers are somebody else's", async () => {
  const sockets = await VisitorSockets.open({ listen: free }, bare);
  sockets[Symbol.dispose]();
  expect(() => sockets.lend()).toThrow(expect.objectContaining({ code: "STOPPING" }));
});

test("each that is lent is a descriptor of its own", async () => {
  using sockets = await VisitorSockets.open({ listen: free, tlsListen: free }, bare);
  const [one, other] = [sockets.lend(), sockets.lend()];
  const all = [one.plain, one.secure ?? 0, other.plain, other.secure ?? 0];
  expect(new Set(all).size).toBe(4);
  const found = all.map((fd) => calls.addressOf(fd)?.port);
  const { port } = sockets.listen;
  expect(found).toEqual([port, sockets.tlsListen?.port, port, sockets.tlsListen?.port]);
  for (const fd of all) closeSync(fd);
});

test("no descriptor is left: the reason is told, and what was made for it is closed", async () => {
  const made: number[] = [];
  let left = 3; // One for each socket, and the first that is lent.
  const few = {
    endHandshakes: () => undefined,
    endListening: () => [],
    duplicate: (fd: number): number => {
      if (left-- === 0) throw new Error("none is left");
      const copy = calls.duplicate(fd);
      made.push(copy);
      return copy;
    },
  };
  using sockets = await VisitorSockets.open({ listen: free, tlsListen: free }, { calls: few });
  expect(() => sockets.lend()).toThrow("none is left");
  expect(calls.addressOf(made[2] ?? 0)).toBeUndefined();
});

test.each([
  ["nothing is kept", false, undefined, true],
  ["something is kept, and nobody can say", true, undefined, false],
  ["something is kept for the next start", true, false, false],
  ["something is kept, and there is no next start", true, true, true],
])("%s: who is the last one", async (_, holdsAny, isLast, expected) => {
  const kept = {
    take: () => undefined,
    keep: async () => undefined,
    closeRest: async () => [],
    holdsAny,
  };
  const said = isLast === undefined ? {} : { isLast: async () => isLast };
  using sockets = await VisitorSockets.open({ listen: free }, { calls, kept, ...said });
  expect(await sockets.isLast()).toBe(expected);
});

test("who waits is returned, and who comes then is refused, whoever else has the socket", async () => {
  using sockets = await VisitorSockets.open({ listen: free, tlsListen: free }, bare);
  const { plain, secure } = sockets.lend();
  const server = createServer().listen({ fd: plain });
  await once(server, "listening");
  server.close(); // Others have it still, and it is listened on.
  await once(server, "close");
  const { port } = sockets.listen;
  const visitor = connect(port, host);
  await once(visitor, "connect");
  const late = sockets.refuse();
  expect([late.plain.length, late.secure.length]).toEqual([1, 0]);
  const [fault] = (await once(connect(port, host), "error")) as [Error];
  expect(fault).toMatchObject({ code: "ECONNREFUSED" });
  for (const fd of [...late.plain, ...(secure === null ? [] : [secure])]) closeSync(fd);
  visitor.destroy();
});

test("nobody is refused at the end: its numbers are somebody else's", async () => {
  const sockets = await VisitorSockets.open({ listen: free }, bare);
  sockets[Symbol.dispose]();
  expect(sockets.refuse()).toEqual({ plain: [], secure: [] });
});
