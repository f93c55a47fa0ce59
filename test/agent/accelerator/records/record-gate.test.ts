// `spool.when_full: block` at the visitors' side: a request is served only with room for its record; it waits a little, then it is answered 503.

import { connect } from "node:net";
import { expect, test } from "vitest";
import { until } from "../../../support/until.ts";
import { ask, openEdge, type Answer, type Edge } from "../edge.ts";

class Room {
  free: number;
  claims = 0;

  constructor(free: number) {
    this.free = free;
  }

  claim(): boolean {
    this.claims++;
    if (this.free === 0) return false;
    this.free--;
    return true;
  }
}

async function withRoom(free: number, heldMax?: number): Promise<Edge & { room: Room }> {
  const room = new Room(free);
  const edge = await openEdge({ site: {}, recordRoom: room, heldMax });
  return Object.assign(edge, { room });
}

const counted = async (edge: Edge, name: string): Promise<number> => {
  const metrics = await edge.registry.getMetricsAsJSON();
  return metrics.find((metric) => metric.name === name)?.values[0]?.value ?? 0;
};

test("with room a request is served at once, and its record is the one that room was kept for", async () => {
  await using edge = await withRoom(2);
  await ask(edge, "/a");
  await until("its record", () => edge.claimed.length === 1);
  expect(edge.room).toMatchObject({ free: 1, claims: 1 });
  expect(await counted(edge, held)).toBe(0);
});

test("without room it waits, in order, and is served when there is some", async () => {
  await using edge = await withRoom(0);
  const order: string[] = [];
  const one = async (path: string): Promise<Answer> => {
    const answer = await ask(edge, path);
    order.push(path);
    return answer;
  };
  const first = one("/1");
  await until("the first waits", async () => (await counted(edge, held)) === 1);
  const second = one("/2");
  await until("the second waits", async () => (await counted(edge, held)) === 2);
  edge.room.free = 1;
  expect((await first).status).toBe(404);
  expect(order).toEqual(["/1"]);
  edge.room.free = 1;
  expect((await second).status).toBe(404);
  await until("their records", () => edge.claimed.length === 2);
});

test("after three seconds it is answered 503 with Retry-After, counted, and recorded without room", async () => {
  await using edge = await withRoom(0);
  const began = performance.now();
  const { status, headers } = await ask(edge, "/");
  expect(performance.now() - began).toBeGreaterThan(2_900);
  expect(status).toBe(503);
  expect(headers).toMatchObject({ "retry-after": "5", "x-accel-reason": "request-log-full" });
  expect(await counted(edge, unserved)).toBe(1);
  await until("its record", () => edge.records.length === 1);
  expect(edge.records[0]).toMatchObject({ response_status: 503, cache: "none" });
  expect(edge.claimed).toEqual([]);
});

test("a visitor who leaves while waiting takes no room", async () => {
  await using edge = await withRoom(0);
  const socket = connect(edge.port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
  await until("it waits", async () => (await counted(edge, held)) === 1);
  socket.destroy();
  await until("its record", () => edge.records.length === 1);
  expect(edge.records[0]).toMatchObject({ response_status: 499 });
  edge.room.free = 1;
  await ask(edge, "/next");
  await until("the next one's record", () => edge.claimed.length === 1);
  expect(edge.room.free).toBe(0);
});

test("only so many wait; the others are told at once", async () => {
  await using edge = await withRoom(0, 2);
  const sockets = Array.from({ length: 3 }, () => connect(edge.port, "127.0.0.1"));
  for (const socket of sockets) {
    socket.on("error", () => {});
    socket.write("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
  }
  await until("one is told", async () => (await counted(edge, unserved)) === 1);
  expect(await counted(edge, held)).toBe(2);
  for (const socket of sockets) socket.destroy();
  await until("their records", () => edge.records.length === 3);
});

const held = "accel_agent_log_held_total";
const unserved = "accel_agent_log_unserved_total";
