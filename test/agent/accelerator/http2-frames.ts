// HTTP/2 by hand, for what no client library sends: frames (RFC 9113 §4.1) and headers that are packed in the plainest way (RFC 7541 §6.2.2).

import type { TLSSocket } from "node:tls";
import { host } from "./edge.ts";
import { shake } from "./secure-clients.ts";

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 1, ack: 1, endHeaders: 4 } as const;

export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly body: Buffer;
};

export function frame(
  type: keyof typeof frameTypes,
  stream: number,
  body: Buffer = Buffer.alloc(0),
  flag = 0,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = frameTypes[type];
  head[4] = flag;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, "latin1");
  return Buffer.concat([number(bytes.length), bytes]);
};

/** With a prefix of 7 bits (RFC 7541 §5.1). */
function number(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let left = value - 127;
  for (; left >= 128; left >>>= 7) bytes.push((left & 127) | 128);
  return Buffer.from([...bytes, left]);
}

/** Literals without indexing. */
export function pack(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.map(([name, value]) => Buffer.concat([Buffer.of(0), text(name), text(value)])),
  );
}

export function get(path = "/"): readonly (readonly [string, string])[] {
  return [
    [":method", "GET"],
    [":scheme", "https"],
    [":authority", host],
    [":path", path],
  ];
}

export const code = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export class FrameVisitor implements Disposable {
  readonly socket: TLSSocket;
  readonly frames: Frame[] = [];
  readonly closed: Promise<void>;
  /** TCP took with it what was not read yet. */
  wasReset = false;
  #read: Buffer = Buffer.alloc(0);

  constructor(socket: TLSSocket) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on(
      "error",
      ({ code }: NodeJS.ErrnoException) => (this.wasReset ||= code === "ECONNRESET"),
    );
    socket.once("close", () => resolve());
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** The answers' status codes cannot be read without unpacking; that there is one can. */
  has(type: keyof typeof frameTypes, stream: number): boolean {
    return this.frames.some((one) => one.type === frameTypes[type] && one.stream === stream);
  }

  /** With which code the connection was given up. */
  get goaway(): number | undefined {
    const said = this.frames.findLast(({ type }) => type === frameTypes.goaway);
    return said?.body.readUInt32BE(4);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#read = Buffer.concat([this.#read, chunk]);
    for (;;) {
      const length = this.#read.length < 9 ? Infinity : this.#read.readUIntBE(0, 3);
      if (this.#read.length < 9 + length) return;
      this.frames.push({
        type: this.#read[3] ?? 0,
        flags: this.#read[4] ?? 0,
        stream: this.#read.readUInt32BE(5) & 0x7fff_ffff,
        body: this.#read.subarray(9, 9 + length),
      });
      this.#read = this.#read.subarray(9 + length);
    }
  }
}

/** After the preface; `settings` are pairs of identifier and value. */
export async function visitByFrames(
  port: number,
  settings: readonly (readonly [number, number])[] = [],
): Promise<FrameVisitor> {
  const visitor = new FrameVisitor(await shake(port, { ALPNProtocols: ["h2"] }));
  const body = Buffer.concat(
    settings.map(([id, value]) => Buffer.concat([Buffer.of(id >> 8, id & 255), code(value)])),
  );
  visitor.send(preface, frame("settings", 0, body));
  return visitor;
}
