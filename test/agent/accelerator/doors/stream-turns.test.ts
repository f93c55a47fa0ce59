// Many streams of HTTP/2 at once: a few begin as they are told, the others wait for a turn, and nothing more is read meanwhile.

import { EventEmitter, once } from "node:events";
import { connect as connectByHttp2, performServerHandshake } from "node:http2";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  beginsAtOnce,
  beginsATurn,
  beginsInACrowd,
  SessionReads,
  StreamTurns,
} from "../../../../src/agent/accelerator/doors/stream-turns.ts";
import { until } from "../../../support/until.ts";
import { flags, frame, get, pack, visitByFrames } from "../http2-frames.ts";
import { openSecure } from "../secure-stage.ts";

class Told extends EventEmitter {
  closed = false;
  destroyed = false;
}

function scene() {
  const began: Told[] = [];
  const told: string[] = [];
  let waits: { takeTurn(): void } | undefined;
  const crowd = { isThere: false };
  const turns = new StreamTurns<Told>({
    turns: {
      wait: (one) => void (waits = one),
      get areAwaited() {
        return crowd.isThere;
      },
    },
    reads: { stop: () => void told.push("stop"), start: () => void told.push("start") },
    begin: (stream) => void began.push(stream),
    onReset: () => void told.push("reset"),
    onNone: () => void told.push("none"),
  });
  const tell = (count: number): readonly Told[] => {
    const streams = Array.from({ length: count }, () => new Told());
    for (const stream of streams) turns.take(stream, []);
    return streams;
  };
  const giveTurn = (): boolean => {
    const next = waits;
    waits = undefined;
    next?.takeTurn();
    return next !== undefined;
  };
  return { turns, crowd, began, told, tell, giveTurn };
}

describe("the streams of a connection", () => {
  it("begin as they are told, a few; the others in their order, a few each turn, and nothing is read until then", () => {
    const { tell, began, told, giveTurn, turns } = scene();
    const streams = tell(beginsAtOnce + beginsATurn + 1);
    expect(began.length).toBe(beginsAtOnce);
    expect(told).toEqual(["stop"]);
    expect(giveTurn()).toBe(true);
    expect([began.length, turns.isEmpty, told]).toEqual([
      beginsAtOnce + beginsATurn,
      false,
      ["stop"],
    ]);
    expect([giveTurn(), giveTurn()]).toEqual([true, false]);
    expect(began).toEqual(streams);
    expect([turns.isEmpty, told]).toEqual([true, ["stop", "start", "none"]]);
    tell(beginsAtOnce + 1);
    expect(began.length).toBe(streams.length + beginsAtOnce);
  });

  it("begin at once again when the connection has rested", () => {
    const { tell, began, turns } = scene();
    tell(beginsAtOnce);
    turns.rested();
    tell(beginsAtOnce);
    expect(began.length).toBe(2 * beginsAtOnce);
  });

  it("begin fewer at once while others wait", () => {
    const { tell, began, crowd } = scene();
    crowd.isThere = true;
    tell(beginsAtOnce);
    expect(began.length).toBe(beginsInACrowd);
  });

  it.each(["aborted", "close"])("never begin when they are taken back first (%s)", (how) => {
    const { tell, began, told, giveTurn } = scene();
    const [waiting] = tell(beginsAtOnce + 1).slice(-1);
    waiting?.emit(how);
    waiting?.emit("error", new Error("taken back"));
    waiting?.emit("close");
    giveTurn();
    expect(began).not.toContain(waiting);
    expect(told).toEqual(["stop", "reset", "start", "none"]);
  });

  it("are forgotten with their connection, and not counted as taken back", () => {
    const { tell, began, told, turns, giveTurn } = scene();
    const [waiting] = tell(beginsAtOnce + 1).slice(-1);
    expect(turns.clear()).toEqual([waiting]);
    waiting?.emit("close");
    giveTurn();
    expect(began.length).toBe(beginsAtOnce);
    expect(told).not.toContain("reset");
  });
});

const count = 120;
const redirects = [{ from: "/page/*", to: "/other", status: 302 as const }];
const ask = (no: number, path: string): Buffer =>
  frame("headers", 2 * no + 1, pack(get(path)), flags.endHeaders | flags.endStream);
const crowded = Array.from({ length: count }, (_, no) => ask(no, `/page/${no}`));

it("somebody else is answered before the last of a hundred, and all are in their order", async () => {
  await using s = await openSecure({ site: { redirects } });
  using crowd = await visitByFrames(s.port);
  using single = await visitByFrames(s.port);
  await until("both are there", () => crowd.has("settings", 0) && single.has("settings", 0));
  crowd.send(...crowded);
  single.send(ask(0, "/page/single"));
  await until("the records", () => s.edge.records.length === count + 1);
  const paths = s.edge.records.map(({ uri_path }) => uri_path);
  expect(paths.indexOf("/page/single")).toBeLessThan(count / 2);
  const ofCrowd = Array.from({ length: count }, (_, no) => `/page/${no}`);
  expect(paths.filter((path) => path !== "/page/single")).toEqual(ofCrowd);
});

it("those that wait are answered when the worker drains", async () => {
  await using s = await openSecure({ site: { redirects } });
  using crowd = await visitByFrames(s.port);
  await until("it is there", () => crowd.has("settings", 0));
  crowd.send(...crowded);
  await until("the first are answered", () => s.edge.records.length > 0);
  await s.edge.drain(10_000);
  await crowd.closed;
  expect(s.edge.records.map(({ response_status: status }) => status)).toEqual(
    Array.from({ length: count }, () => 302),
  );
  expect(crowd.has("headers", 2 * count - 1)).toBe(true);
});

it("what is not read of a session stays with the system, and comes when it is read again", async () => {
  let told = 0;
  const socketOf = Promise.withResolvers<Socket>();
  await using server = createServer((socket) => {
    const session = performServerHandshake(socket);
    session.on("error", () => {});
    session.on("stream", (stream) => {
      told++;
      stream.respond({}, { endStream: true });
    });
    socketOf.resolve(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const visitor = connectByHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  using _ = { [Symbol.dispose]: () => visitor.destroy() };
  const ask = (): void => void visitor.request().resume();
  ask();
  await until("the first is told", () => told === 1);
  const socket = await socketOf.promise;
  const reads = new SessionReads(socket);
  reads.stop();
  const { bytesRead } = socket;
  for (let no = 0; no < 50; no++) ask();
  await sleep(100);
  expect([told, socket.bytesRead]).toEqual([1, bytesRead]);
  reads.start();
  await until("all are told", () => told === 51);
});
