// Bytes that are lent to an answer in the lane: what waits for the kernel stays as it was, though the memory that it was read into is written over.

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { expect, test } from "vitest";
import { Connection } from "../../../../src/agent/accelerator/doors/exchange.ts";
import { scanHead } from "../../../../src/agent/accelerator/lane/head-scanner.ts";
import { LaneCarrier } from "../../../../src/agent/accelerator/lane/lane-carrier.ts";
import { SharedReads } from "../../../../src/agent/accelerator/shared-reads.ts";

/** A visitor's socket whose kernel takes nothing: what is written waits as it was handed over. */
class FullSocket {
  readonly destroyed = false;
  readonly writableNeedDrain = false;
  readonly bytesWritten = 0;
  readonly waiting: (string | Uint8Array)[] = [];

  write(data: string | Uint8Array): boolean {
    this.waiting.push(data);
    return true;
  }
  cork(): void {}
  uncork(): void {}
  setTimeout(): void {}

  get text(): string {
    return this.waiting.map((data) => Buffer.from(data as string, "latin1").toString("latin1")).join(""); // prettier-ignore
  }
}

function openResponse(socket: FullSocket): LaneCarrier["response"] {
  const head = scanHead(Buffer.from("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), 0);
  if (head.kind !== "plain") throw new Error("the head is plain");
  // It has what the carrier uses.
  const arrival = {
    socket: socket as unknown as Socket,
    peer: undefined,
    port: 80,
    headerBytes: 0,
  };
  return new LaneCarrier(head, new Connection(1, arrival), () => 0).response;
}

/** Reads each piece in a read of its own, all into the same memory. */
async function readEach(
  pieces: readonly Buffer[],
  take: (bytes: Buffer, no: number) => void,
): Promise<void> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const far = connect((server.address() as AddressInfo).port, "127.0.0.1"); // A TCP server that listens has one.
  const [near] = (await accepted) as [Socket];
  let no = 0;
  let isTaken = Promise.withResolvers<void>();
  const reads = SharedReads.of(near, (bytes) => {
    take(bytes, no++);
    isTaken.resolve();
  });
  expect(reads).toBeDefined();
  near.resume();
  for (const piece of pieces) {
    isTaken = Promise.withResolvers<void>();
    far.write(piece);
    await isTaken.promise;
  }
  near.destroy();
  far.destroy();
  server.close();
}

const size = 9_000;
const letters = ["a", "b", "c", "d", "e"];
const pieces = letters.map((letter) => Buffer.alloc(size, letter));
const body = letters.map((letter) => letter.repeat(size)).join("");

test.each([
  ["of a stated length", ["Content-Length", String(size * letters.length)], body],
  ["in chunks", [], `${letters.map((letter) => `${size.toString(16)}\r\n${letter.repeat(size)}\r\n`).join("")}0\r\n\r\n`],
])("a body %s", async (_, fields, expected) => {
  const socket = new FullSocket();
  const response = openResponse(socket);
  response.writeHead(200, [...fields]);
  // What is read last is another's.
  await readEach([...pieces, Buffer.alloc(size, "z")], (bytes, no) => {
    if (no < pieces.length - 1) response.write(bytes);
    else if (no === pieces.length - 1) response.end(bytes);
  });
  expect(socket.text.slice(socket.text.indexOf("\r\n\r\n") + 4)).toBe(expected);
}); // prettier-ignore
