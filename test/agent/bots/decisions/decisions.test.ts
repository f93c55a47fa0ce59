// The decision log against a plain list: what is kept is the last ones, whole; what is not kept is counted; texts go when nobody refers to them.

import { MessageChannel } from "node:worker_threads";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DecisionLog } from "../../../../src/agent/bots/decisions/decision-log.ts";
import {
  DecisionRing,
  keptReasons,
  type KeptDecision,
} from "../../../../src/agent/bots/decisions/decision-ring.ts";
import {
  DecisionTeller,
  type DecisionBatch,
  type DecisionLine,
} from "../../../../src/agent/bots/decisions/decision-teller.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { agentCharsMax, type Decision } from "../../../../src/core/serving/decision.ts";
import type { SetRef, VerdictReason } from "../../../../src/core/serving/verdict.ts";
import { until } from "../../../support/until.ts";

const addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::192.0.2.1", "::", ""];
const reasons: readonly VerdictReason[] = [
  "bad-set",
  "deny-pair",
  "unreviewed-blocked",
  "unreviewed-blocked-by-default",
];
const setRef = fc.record<SetRef>({
  kind: fc.constantFrom("vip", "bad"),
  host: fc.constantFrom("a.example", "b.example"),
  version: fc.nat(),
});
const decision: fc.Arbitrary<Decision> = fc.record({
  atMs: fc.nat(),
  host: fc.constantFrom("a.example", "www.a.example"),
  clientIp: fc.constantFrom(...addresses),
  userAgent: fc.option(fc.string({ maxLength: 8, unit: "binary" }), { nil: undefined }),
  verdict: fc.oneof(
    fc.record({
      kind: fc.constantFrom("block" as const, "would-block" as const),
      reason: fc.constantFrom(...reasons),
      bot: fc.option(fc.constantFrom("evil", "good")),
      set: fc.option(setRef, { nil: undefined }),
    }),
    fc.record({
      kind: fc.constantFrom("limit" as const, "would-limit" as const),
      reason: fc.constant("request-rate" as const),
      bot: fc.option(fc.constantFrom("evil", "good")),
      rule: fc.constantFrom("/a: 1 in 1 s, 1 at once", "/**: 5 in 60 s, 9 at once"),
    }),
  ),
  policyOf: fc.option(fc.constantFrom("a.example"), { nil: undefined }),
});

function lineOf(id: string, one: Decision): DecisionLine {
  const { kind, reason, bot } = one.verdict;
  const set = "set" in one.verdict ? one.verdict.set : undefined;
  return [
    id,
    one.atMs,
    one.host,
    one.clientIp,
    one.userAgent ?? null,
    kind === "allow" ? "block" : kind,
    reason,
    bot,
    set?.kind ?? null,
    set?.host ?? null,
    set?.version ?? 0,
    one.policyOf ?? null,
    "rule" in one.verdict ? one.verdict.rule : null,
  ];
}

const canonical: Readonly<Record<string, string>> = {
  "2001:db8::192.0.2.1": "2001:db8::c000:201",
};

test("every reason has a place, and there is half a byte for it", () => {
  expect(new Set(keptReasons).size).toBe(keptReasons.length);
  expect(keptReasons.length).toBeLessThanOrEqual(16);
});

test("a ring holds the last ones as they were, and no text of the others", () => {
  fc.assert(
    fc.property(
      fc.array(decision, { maxLength: 40 }),
      fc.integer({ min: 1, max: 12 }),
      (all, n) => {
        const ring = new DecisionRing(n);
        const kept: KeptDecision[] = [];
        all.forEach((one, i) => {
          const id = (i * 0x9e37_79b9_7f4a).toString(16).padStart(16, "f");
          ring.add(lineOf(id, one));
          kept.unshift({ ...one, clientIp: canonical[one.clientIp] ?? one.clientIp, id });
          kept.splice(n);
        });
        expect(ring.size).toBe(kept.length);
        for (const one of kept) expect(ring.find(one.id)).toEqual(one);
        expect(ring.find("0123456789abcdef")).toBeUndefined();
        for (const address of addresses) {
          const about =
            address === ""
              ? []
              : kept.filter((one) => one.clientIp === (canonical[address] ?? address));
          expect(ring.about(address, 3)).toEqual({
            total: about.length,
            newest: about.slice(0, 3).toSorted((a, b) => b.atMs - a.atMs),
          });
        }
        const texts = kept.flatMap(({ host, userAgent, policyOf, verdict }) => [
          host,
          userAgent ?? null,
          policyOf ?? null,
          verdict.bot,
          "rule" in verdict ? verdict.rule : null,
          "set" in verdict ? (verdict.set?.host ?? null) : null,
        ]);
        expect(ring.distinctTexts).toBe(new Set(texts.filter((text) => text !== null)).size);
      },
    ),
  );
});

const some: Decision = {
  atMs: 1_900_000_000_000,
  host: "www.a.example",
  clientIp: "192.0.2.1",
  userAgent: "x".repeat(1_000),
  verdict: {
    kind: "block",
    reason: "bad-set",
    bot: "evil",
    set: { kind: "bad", host: "a.example", version: 7 },
  },
  policyOf: undefined,
};

test("what workers tell can be looked up, with as much of a user agent as a verdict looks at", async () => {
  const registry = new Registry();
  using log = new DecisionLog(registry, 3);
  const { port, batchMax } = log.openWorker(2);
  expect(batchMax).toBe(1_000);
  using teller = new DecisionTeller(port, batchMax);
  const ids = [1, 2, 3, 4].map((no) => teller.note({ ...some, atMs: no }));
  expect(new Set(ids).size).toBe(4);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/);
  await until("the last one", () => log.find(ids[3] ?? "") !== undefined);
  expect(log.find(ids[3] ?? "")).toEqual({
    ...some,
    atMs: 4,
    id: ids[3],
    userAgent: "x".repeat(agentCharsMax),
  });
  expect(log.find(ids[0] ?? "")).toBeUndefined();
  expect(log.about("192.0.2.1", 2)).toMatchObject({
    total: 3,
    newest: [{ id: ids[3] }, { id: ids[2] }],
  });
  expect(log.facts()).toEqual({ kept: 3, dropped: 0 });
  expect(await registry.metrics()).toContain("accel_agent_decisions_total 4");
});

test("the last decisions of a worker that ends are told", async () => {
  using log = new DecisionLog(new Registry());
  const { port, batchMax } = log.openWorker(1);
  const teller = new DecisionTeller(port, batchMax);
  const id = teller.note(some);
  teller[Symbol.dispose]();
  const found = await until("the decision", () => log.find(id));
  expect(found).toMatchObject({ id });
});

test("a worker that ends with nothing to tell tells nothing", async () => {
  const { port1: main, port2 } = new MessageChannel();
  const told: unknown[] = [];
  const closed = Promise.withResolvers<void>();
  main.on("message", (batch) => told.push(batch));
  main.on("close", () => closed.resolve());
  new DecisionTeller(port2, 10)[Symbol.dispose]();
  await closed.promise;
  expect(told).toEqual([]);
});

test("while main does not answer, a batch waits and the rest is dropped and counted", async () => {
  const { port1: main, port2 } = new MessageChannel();
  const batches: DecisionBatch[] = [];
  main.on("message", (batch: DecisionBatch) => batches.push(batch));
  using teller = new DecisionTeller(port2, 10);
  for (let i = 0; i < 4; i++) teller.note(some);
  await until("the first batch", () => batches.length === 1);
  for (let i = 0; i < 25; i++) expect(teller.note(some)).toHaveLength(16);
  expect(batches).toHaveLength(1);
  main.postMessage(null, []);
  await until("the second batch", () => batches.length === 2);
  const counts = batches.map(({ lines, dropped }) => [lines.split("\n").length - 1, dropped]);
  expect(counts).toEqual([
    [4, 0],
    [10, 15],
  ]);
  main.close();
});

test("dropped ones are counted by main, each once, over all workers", async () => {
  const registry = new Registry();
  using log = new DecisionLog(registry);
  const workers = [log.openWorker(1), log.openWorker(1)];
  const tellers = workers.map(({ port }) => new DecisionTeller(port, 2));
  for (const teller of tellers) for (let i = 0; i < 5; i++) teller.note(some);
  await until("both", () => log.facts().dropped === 6);
  for (const teller of tellers) for (let i = 0; i < 3; i++) teller.note(some);
  await until("both again", () => log.facts().dropped === 8);
  expect(log.facts()).toEqual({ kept: 8, dropped: 8 });
  expect(await registry.metrics()).toContain("accel_agent_decisions_dropped_total 8");
  for (const teller of tellers) teller[Symbol.dispose]();
});
