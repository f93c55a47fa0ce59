// Reads into one memory: what is kept stays as it came, whatever comes later and on whichever connection, and a connection can be left to who reads data.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { kept, SharedReads } from "../../../src/agent/accelerator/shared-reads.ts";

type Pair = AsyncDisposable & { readonly near: Socket; readonly far: Socket };

async function pair(): Promise<Pair> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const far = connect((server.address() as AddressInfo).port, "127.0.0.1"); // A TCP server that listens has one.
  const [near] = (await accepted) as [Socket];
  return {
    near,
    far,
    async [Symbol.asyncDispose]() {
      near.destroy();
      far.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** In pieces, with time between them, so that each is a read of its own. */
async function send(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece);
    await sleep(2);
  }
  socket.end();
}

const sizes = [1, 700, 16_383, 16_384, 300_000, 5, 65_536, 65_537, 2];

test("what is kept stays as it came, on many connections at once", async () => {
  await using stack = new AsyncDisposableStack();
  const reading = Array.from({ length: 5 }, async () => {
    const { near, far } = stack.use(await pair());
    const sent = sizes.map((size) => randomBytes(size));
    const parts: Buffer[] = [];
    const raw: Buffer[] = [];
    const reads = SharedReads.of(near, (bytes) => {
      raw.push(bytes);
      parts.push(kept(bytes));
    });
    expect(reads).toBeDefined();
    const ended = once(near, "end");
    near.resume();
    await send(far, sent);
    await ended;
    return { sent: Buffer.concat(sent), kept: Buffer.concat(parts), raw: Buffer.concat(raw) };
  });
  const all = await Promise.all(reading);
  for (const one of all) expect(one.kept.equals(one.sent)).toBe(true);
  // The memory is shared indeed: who does not keep what he needs has something else.
  expect(all.every((one) => one.raw.equals(one.sent))).toBe(false);
});

test("a connection that is left gives out data, no faster than they are taken", async () => {
  await using both = await pair();
  const { near, far } = both;
  const first = Promise.withResolvers<Buffer>();
  const reads = SharedReads.of(near, (bytes) => first.resolve(kept(bytes)));
  near.resume();
  const sent = [
    randomBytes(40_000),
    ...sizes.map((size) => randomBytes(size)),
    randomBytes(4_000_000),
  ];
  far.write("begin");
  expect(String(await first.promise)).toBe("begin");
  near.pause();
  reads?.leave();
  const sending = send(far, sent);
  await sleep(50);
  expect(near.readableLength).toBeLessThan(300_000);
  const parts: Buffer[] = [];
  for await (const part of near) {
    parts.push(part as Buffer); // No encoding is set.
    if (parts.length % 7 === 0) await sleep(1);
    expect(near.readableLength).toBeLessThan(300_000);
  }
  await sending;
  expect(Buffer.concat(parts).equals(Buffer.concat(sent))).toBe(true);
});

test("what was read before comes as data, and nothing is shared", async () => {
  await using both = await pair();
  const { near, far } = both;
  far.write("early");
  await once(near, "readable");
  expect(SharedReads.of(near, () => undefined)).toBeUndefined();
  expect(String(near.read())).toBe("early");
});
