// The bus over a way that the test makes: what goes out together, who hears what, and what is said of what was lost.

import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { CentralBus } from "../../../src/central/cluster/bus.ts";
import type { BusMessage } from "../../../src/wire/bus-message.ts";
import { FakeNotices } from "../../support/fake-notices.ts";
import { until } from "../../support/until.ts";

type Member = AsyncDisposable & {
  readonly bus: CentralBus;
  readonly heard: (readonly [BusMessage, string])[];
  readonly missed: () => number;
};

async function join(server: FakeNotices, id: string): Promise<Member> {
  const bus = await CentralBus.open({ id, openWay: server.openWay, log: silentLog() });
  const heard: (readonly [BusMessage, string])[] = [];
  let missed = 0;
  bus.hear((message, from) => heard.push([message, from]));
  bus.onMissed(() => missed++);
  return {
    bus,
    heard,
    missed: () => missed,
    [Symbol.asyncDispose]: async () => bus[Symbol.asyncDispose](),
  };
}

const ids = ["00000000000000a1", "00000000000000b2", "00000000000000c3"] as const;
const journal = (...siteIds: readonly number[]): BusMessage => {
  return { kind: "journal", site_ids: [...siteIds] };
};

async function joinThree() {
  await using stack = new AsyncDisposableStack();
  const server = new FakeNotices();
  const members: Member[] = [];
  for (const id of ids) members.push(stack.use(await join(server, id)));
  const [a, b, c] = members;
  if (a === undefined || b === undefined || c === undefined) throw new Error("three joined");
  const owned = stack.move();
  return { server, a, b, c, [Symbol.asyncDispose]: async () => owned.disposeAsync() };
}

test("what is told at a time goes out together, to all others and not to oneself", async () => {
  await using three = await joinThree();
  const { server, a, b, c } = three;
  for (const id of [1, 2, 3]) a.bus.tell(journal(id));
  await a.bus.flushed();
  expect(server.sent).toHaveLength(1);
  expect(server.sent[0]).toHaveLength(1);
  const told = [1, 2, 3].map((id) => [journal(id), ids[0]]);
  expect([a.heard, b.heard, c.heard]).toEqual([[], told, told]);
});

test("what is told to one is heard by that one", async () => {
  await using three = await joinThree();
  const { a, b, c } = three;
  a.bus.tellOne(ids[2], { kind: "bye" });
  await a.bus.flushed();
  expect([a.heard, b.heard, c.heard]).toEqual([[], [], [[{ kind: "bye" }, ids[0]]]]);
});

test("whoever lost its way asks for what it missed, and has all others ask", async () => {
  await using three = await joinThree();
  const { server, a, b, c } = three;
  server.cut(0);
  a.bus.tell(journal(1));
  await a.bus.flushed();
  expect([a.missed(), b.missed(), c.missed()]).toEqual([0, 0, 0]);
  server.mend(0);
  await a.bus.flushed();
  expect([a.missed(), b.missed(), c.missed()]).toEqual([1, 1, 1]);
  a.bus.tell(journal(2));
  await a.bus.flushed();
  expect(b.heard).toEqual([[journal(2), ids[0]]]);
});

test("what could not be sent is told to be missing, as soon as anything can be", async () => {
  await using three = await joinThree();
  const { server, a, b } = three;
  const [own] = server.joined;
  if (own === undefined) throw new Error("nobody joined");
  own.isCut = true;
  a.bus.tell(journal(1));
  await until("it failed", () => server.failures > 0);
  expect(b.missed()).toBe(0);
  own.isCut = false;
  a.bus.tell(journal(2));
  await until("it is told", () => b.missed() === 1 && b.heard.length === 1);
  expect(b.heard).toEqual([[journal(2), ids[0]]]);
});

test("more than can wait is lost, and told to be", async () => {
  await using three = await joinThree();
  const { a, b } = three;
  const large: BusMessage = { kind: "shut", site_id: 1 };
  const domains = ["x".repeat(8 * 2 ** 20)];
  a.bus.tell({ kind: "customer", customer_id: 1, topics: ["bots"], domains });
  a.bus.tell(large);
  await a.bus.flushed();
  expect(b.missed()).toBe(1);
  expect(b.heard).toEqual([[large, ids[0]]]);
});

test.each([
  ["no JSON", "m 00000000000000a1\n{"],
  ["a kind of a later release", `m 00000000000000a1\n{"kind":"later"}`],
  ["a member of another form", `m 00000000000000a1\n{"kind":"shut","site_id":"x"}`],
])("%s is left out, and what stands beside it is heard", async (_, text) => {
  await using three = await joinThree();
  const { server, b } = three;
  server.joined[1]?.onNotice(`${text}\n{"kind":"bye","more":1}`);
  expect(b.heard).toEqual([[{ kind: "bye", more: 1 }, ids[0]]]);
});
