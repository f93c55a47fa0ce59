// How an order goes on: what happened, and what follows.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  heldUpMs,
  nextOrder,
  noneInRow,
  tryNow,
  type OrderEvent,
  type AcmeOrderState,
} from "../../../src/core/acme/order-step.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = { nowMs: 1_000 * dayMs, random: 0.5 };

const fresh: AcmeOrderState = {
  phase: "resting",
  attempts: 0,
  inRow: noneInRow,
  error: null,
  names: ["a.example", "b.example"],
  ordered: [],
  leftOut: {},
  publishedMs: null,
  expiresMs: null,
  issued: null,
};
const publishing: AcmeOrderState = {
  ...fresh,
  phase: "publishing",
  ordered: fresh.names,
  publishedMs: now.nowMs - 1_000,
  expiresMs: now.nowMs + dayMs,
};
const asking: AcmeOrderState = { ...publishing, phase: "asking" };
const b = { "b.example": "leads elsewhere" };
const refused = (
  hosts: Readonly<Record<string, string>> = {},
  retryAfterMs?: number,
): OrderEvent => ({
  kind: "refused",
  reason: "no",
  retryAfterMs,
  hosts,
});

test("an order that goes well", () => {
  const begun = nextOrder(fresh, { kind: "begun" }, now);
  expect(begun).toMatchObject({ phase: "placing", ordered: fresh.names, dueMs: now.nowMs });
  expect(nextOrder({ ...fresh, ...begun }, { kind: "placed" }, now)).toMatchObject({
    phase: "placing",
    dueMs: now.nowMs,
  });
  expect(nextOrder({ ...fresh, ...begun }, { kind: "opened" }, now).phase).toBe("publishing");
  expect(nextOrder(publishing, { kind: "answered" }, now).phase).toBe("asking");
  const renewMs = now.nowMs + 60 * dayMs;
  expect(nextOrder(asking, { kind: "issued", renewMs, windowAskedMs: null }, now)).toEqual({
    phase: "resting",
    attempts: 0,
    inRow: noneInRow,
    error: null,
    ordered: [],
    leftOut: {},
    dueMs: renewMs,
    tryFromMs: now.nowMs,
    isOver: true,
  });
});

test("an order that waits for hosts says for which, until every host answers", () => {
  const atOnce = nextOrder(publishing, { kind: "awaited", hosts: [] }, now);
  expect(atOnce).toMatchObject({ error: null, attempts: 0, dueMs: now.nowMs + 1_000 });
  const later = nextOrder(publishing, { kind: "awaited", hosts: ["the host x"] }, now);
  expect(later).toMatchObject({ error: "waits for the host x", attempts: 0 });
  const hosts = Array.from({ length: 7 }, (_, no) => `h${no}`);
  expect(nextOrder(publishing, { kind: "awaited", hosts }, now).error).toBe(
    "waits for h0; h1; h2; h3; h4; and 2 more",
  );
  const answered = nextOrder({ ...publishing, ...later }, { kind: "answered" }, now);
  expect(answered).toMatchObject({ phase: "asking", error: null });
});

test("an order that waits for room looks each ten seconds, and says nothing of it once there is room", () => {
  const placing = { ...publishing, phase: "placing" } as const;
  const waits = nextOrder(placing, { kind: "awaited", hosts: ["room"] }, now);
  expect(waits).toMatchObject({
    phase: "placing",
    error: "waits for room",
    attempts: 0,
    dueMs: now.nowMs + 10_000,
  });
  const opened = nextOrder({ ...placing, ...waits }, { kind: "opened" }, now);
  expect(opened).toMatchObject({ phase: "publishing", error: null });
});

test("a mismatch asks the directory nothing: the order stays, and central looks ever less often, up to ten minutes", () => {
  let order = publishing;
  const waits: number[] = [];
  for (let look = 0; look < 12; look++) {
    const next = nextOrder(order, { kind: "mismatched", hosts: b }, now);
    expect(next).toMatchObject({ phase: "publishing", error: "b.example: leads elsewhere" });
    waits.push(next.dueMs - now.nowMs);
    order = { ...order, ...next };
  }
  expect(waits[0]).toBeLessThanOrEqual(5_000);
  expect(Math.max(...waits)).toBeLessThanOrEqual(600_000);
  expect(waits).toEqual(waits.toSorted((one, other) => one - other));
});

test.each([
  ["b.example at 127.0.0.3, port 80: connect ECONNREFUSED", ""],
  ["public DNS has no address for b.example: ENOTFOUND", ""],
  ["www.b.example at 192.0.2.1 answers 404 to the challenge", "b.example: "],
  ["central has no route to 2001:db8::1", "b.example: "],
])("an error names the host once: %s", (reason, before) => {
  const hosts = { "b.example": reason };
  const { error } = nextOrder(publishing, { kind: "mismatched", hosts }, now);
  expect(error).toBe(`${before}${reason}`);
});

test("a host that holds up the others for an hour is left out, and is tried again a day later", () => {
  const held = { ...publishing, publishedMs: now.nowMs - heldUpMs };
  const without = nextOrder(held, { kind: "mismatched", hosts: b }, now);
  expect(without).toMatchObject({ phase: "placing", ordered: ["a.example"], leftOut: b });
  const issued = nextOrder(
    { ...held, ...without, phase: "asking" },
    { kind: "issued", renewMs: now.nowMs + 60 * dayMs, windowAskedMs: null },
    now,
  );
  expect(issued).toMatchObject({
    phase: "resting",
    leftOut: b,
    error: "b.example: leads elsewhere",
  });
  expect(issued.dueMs).toBe(now.nowMs + dayMs);
  const again = nextOrder({ ...held, ...issued }, { kind: "begun" }, now);
  expect(again.ordered).toEqual(fresh.names);
});

test("where a good certificate names the others already, another without the host is not ordered", () => {
  const renewMs = now.nowMs + 20 * dayMs;
  const issued = { names: ["a.example"], renewMs };
  const held = { ...publishing, publishedMs: now.nowMs - heldUpMs, issued };
  const next = nextOrder(held, { kind: "mismatched", hosts: b }, now);
  expect(next).toMatchObject({ phase: "resting", leftOut: b, dueMs: now.nowMs + dayMs });
  const due = { ...held, issued: { ...issued, renewMs: now.nowMs - 1 } };
  expect(nextOrder(due, { kind: "mismatched", hosts: b }, now).phase).toBe("placing");
});

test("where no host leads here, nothing is ordered, however long it takes", () => {
  const held = { ...publishing, publishedMs: now.nowMs - 3 * dayMs };
  const hosts = { "a.example": "x", "b.example": "y" };
  expect(nextOrder(held, { kind: "mismatched", hosts }, now).phase).toBe("publishing");
});

test("an order that the directory has forgotten by then is placed anew", () => {
  const old = { ...publishing, expiresMs: now.nowMs };
  expect(nextOrder(old, { kind: "mismatched", hosts: b }, now).phase).toBe("placing");
  expect(nextOrder(asking, { kind: "forgotten", reason: "gone" }, now)).toMatchObject({
    phase: "placing",
    attempts: 1,
    error: "gone",
  });
});

test.each(["placing", "publishing", "asking"] as const)(
  "an order that the directory forgets while it is %s is over",
  (phase) => {
    const next = nextOrder({ ...asking, phase }, { kind: "forgotten", reason: "gone" }, now);
    expect(next).toMatchObject({ phase: "placing", isOver: true });
    const putOff = { kind: "put-off", reason: "503", retryAfterMs: undefined } as const;
    expect(nextOrder({ ...asking, phase }, putOff, now)).toMatchObject({ phase, isOver: false });
  },
);

test("what was refused rests, and what the directory says is the least", () => {
  const first = nextOrder(asking, refused(), now);
  expect(first).toMatchObject({ phase: "resting", attempts: 1, error: "no", ordered: [] });
  expect(first.dueMs - now.nowMs).toBeGreaterThanOrEqual(450_000);
  const said = nextOrder(asking, refused({}, 5 * hourMs), now);
  expect(said.dueMs - now.nowMs).toBe(5 * hourMs);
  const never = nextOrder(asking, refused({}, 1_000 * dayMs), now);
  expect(never.dueMs - now.nowMs).toBe(7 * dayMs);
});

test("a directory refuses one host: after the second time the others go on without it", () => {
  const first = nextOrder(asking, refused(b), now);
  expect(first.leftOut).toEqual({});
  const once = { ...asking, attempts: first.attempts, inRow: first.inRow };
  const second = nextOrder(once, refused(b), now);
  expect(second.leftOut).toEqual(b);
  const next = nextOrder({ ...fresh, attempts: 2, leftOut: b }, { kind: "begun" }, now);
  expect(next.ordered).toEqual(["a.example"]);
  const all = { "a.example": "x", "b.example": "y" };
  expect(nextOrder(once, refused(all), now).leftOut).toEqual({});
});

/** Takes events one after the other, each at the time when the order is due. */
function takeAll(begins: AcmeOrderState, events: readonly OrderEvent[]) {
  let order = begins;
  let atMs = now.nowMs;
  const waits: number[] = [];
  for (const event of events) {
    const next = nextOrder(order, event, { nowMs: atMs, random: 0.5 });
    waits.push(next.dueMs - atMs);
    atMs = next.dueMs;
    order = { ...order, ...next };
  }
  return { order, waits };
}
const putOff: OrderEvent = { kind: "put-off", reason: "503", retryAfterMs: undefined };
const mismatch: OrderEvent = { kind: "mismatched", hosts: b };
const busy: OrderEvent = { kind: "working", retryAfterMs: undefined };

test("looks that failed make no pause of the directory's longer, and leave no host out", () => {
  const looks = Array.from({ length: 8 }, () => mismatch);
  const { order, waits } = takeAll(publishing, [...looks, { kind: "answered" }, refused(b)]);
  expect(waits.at(-1)).toBe(675_000);
  expect(order).toMatchObject({ phase: "resting", attempts: 9, leftOut: {} });
});

test("what was refused before makes no look rarer, and is counted over the orders that follow", () => {
  const again: readonly OrderEvent[] = [
    { kind: "begun" },
    { kind: "placed" },
    { kind: "opened" },
    mismatch,
    { kind: "answered" },
    refused(),
  ];
  const { waits } = takeAll({ ...asking, expiresMs: null }, [refused(), ...again, ...again]);
  expect(waits.filter((ms) => ms > 60_000)).toEqual([675_000, 1_350_000, 2_700_000]);
  expect(waits.filter((ms) => ms > 0 && ms <= 60_000)).toEqual([3_750, 3_750]);
});

test("a directory that is there again is asked as one that was never away; one that forgets each order ever less often", () => {
  const away = Array.from({ length: 6 }, () => putOff);
  const { waits } = takeAll({ ...asking, expiresMs: null }, [...away, busy, putOff]);
  expect(waits.at(-1)).toBe(waits[0]);
  const forgets: readonly OrderEvent[] = [
    { kind: "forgotten", reason: "gone" },
    { kind: "placed" },
  ];
  const { waits: pauses } = takeAll(asking, [...forgets, ...forgets, ...forgets]);
  expect(pauses.filter((ms) => ms > 0)).toEqual([1_500, 3_000, 6_000]);
});

test("a directory that does not finish is asked ever less often and told of, and is done with when the order expires", () => {
  const expiresMs = now.nowMs + 2 * hourMs;
  const { order, waits } = takeAll(
    { ...asking, expiresMs },
    Array.from({ length: 20 }, () => busy),
  );
  expect(waits.slice(0, 10)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map((s) => s * 1_000));
  expect(order).toMatchObject({
    phase: "asking",
    attempts: 0,
    error: "the directory has not finished the order yet",
  });
  const late = { nowMs: expiresMs, random: 0.5 };
  expect(nextOrder(order, busy, late)).toMatchObject({
    phase: "placing",
    attempts: 1,
    isOver: true,
    error: "the directory had not finished the order when the order expired",
  });
});

test("five failures an hour are never met, whatever chance says", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 6, maxLength: 6 }),
      (chances) => {
        let order = asking;
        let atMs = 0;
        const failures = chances.map((random) => {
          const next = nextOrder({ ...order, phase: "asking" }, refused(), { nowMs: atMs, random });
          order = { ...order, ...next };
          atMs = next.dueMs;
          return atMs;
        });
        expect(failures.filter((ms) => ms <= hourMs).length).toBeLessThan(5);
      },
    ),
  );
});

test("nor by somebody who has the order tried as soon as he may", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 12, maxLength: 12 }),
      (chances) => {
        let order = asking;
        let atMs = 0;
        const failures = chances.map((random) => {
          const next = nextOrder({ ...order, phase: "asking" }, refused(), { nowMs: atMs, random });
          order = { ...order, ...next };
          const verdict = tryNow({ ...order, ...next }, atMs);
          const failedMs = atMs;
          atMs = verdict.kind === "later" ? verdict.fromMs : atMs;
          return failedMs;
        });
        for (const from of failures)
          expect(failures.filter((ms) => ms >= from && ms <= from + hourMs).length).toBeLessThan(5);
      },
    ),
  );
});

const minute = 60_000;
test.each<[string, AcmeOrderState, OrderEvent, number]>([
  ["a look, after five seconds", publishing, { kind: "mismatched", hosts: b }, 5_000],
  ["a failure, after two minutes", asking, refused(), 2 * minute],
  [
    "a third one, after half an hour",
    { ...asking, inRow: { ...noneInRow, refused: 2 } },
    refused(),
    30 * minute,
  ],
  ["what a directory says is the least", asking, refused({}, 4 * minute), 4 * minute],
  [
    "a limit of the directory's",
    asking,
    { kind: "put-off", reason: "limited", retryAfterMs: 40 * minute },
    40 * minute,
  ],
])("it may be tried before it is due: %s", (_, order, event, waitMs) => {
  // After some trouble of the kind the pause is longer than that.
  const before = { ...order, inRow: { ...order.inRow, mismatched: 9, "put-off": 19 } };
  const next = nextOrder(before, event, now);
  const waits = { ...before, ...next };
  expect(next.dueMs).toBeGreaterThan(now.nowMs + waitMs - 1);
  expect(tryNow(waits, now.nowMs)).toEqual({ kind: "later", fromMs: now.nowMs + waitMs });
  expect(tryNow(waits, now.nowMs + waitMs)).toEqual({ kind: "now" });
});

test("an order that is due is being tried; one that rests has nothing to try; one of before this release may be tried", () => {
  const dueMs = now.nowMs + hourMs;
  const rests = { ...fresh, dueMs, tryFromMs: null };
  expect(tryNow(rests, now.nowMs)).toEqual({ kind: "rests" });
  expect(tryNow(rests, dueMs)).toEqual({ kind: "now" });
  expect(tryNow({ ...rests, attempts: 1 }, now.nowMs)).toEqual({ kind: "now" });
  // Hosts that were left out may be right now.
  expect(tryNow({ ...rests, error: "b.example: leads elsewhere" }, now.nowMs)).toEqual({
    kind: "now",
  });
});

test("hosts that the directory refused are not ordered anew before their time: the same certificate would be issued again", () => {
  const issued: OrderEvent = {
    kind: "issued",
    renewMs: now.nowMs + 60 * dayMs,
    windowAskedMs: null,
  };
  const partly = { ...asking, ordered: ["a.example"], leftOut: b };
  const refusedOnes = nextOrder({ ...partly, inRow: { ...noneInRow, refused: 2 } }, issued, now);
  expect(refusedOnes.tryFromMs).toBe(refusedOnes.dueMs);
  expect(nextOrder(partly, issued, now).tryFromMs).toBe(now.nowMs);
});

test("whatever happens, an order is due again", () => {
  const events: fc.Arbitrary<OrderEvent> = fc.oneof(
    fc.constantFrom<OrderEvent>(
      { kind: "begun" },
      { kind: "placed" },
      { kind: "opened" },
      { kind: "awaited", hosts: ["x"] },
      { kind: "answered" },
    ),
    fc.constantFrom<OrderEvent>(
      { kind: "mismatched", hosts: b },
      { kind: "working", retryAfterMs: 9e12 },
      { kind: "forgotten", reason: "x" },
    ),
    fc.constantFrom<OrderEvent>(
      refused(b, 9e15),
      { kind: "put-off", reason: "x", retryAfterMs: 9e15 },
      { kind: "issued", renewMs: now.nowMs + dayMs, windowAskedMs: null },
    ),
  );
  fc.assert(
    fc.property(fc.array(events, { maxLength: 40 }), (all) => {
      let order: AcmeOrderState = publishing;
      for (const event of all) {
        const next = nextOrder(order, event, now);
        expect(next.dueMs).toBeGreaterThanOrEqual(now.nowMs);
        expect(next.dueMs).toBeLessThanOrEqual(now.nowMs + 7 * dayMs);
        expect(next.tryFromMs).toBeLessThanOrEqual(now.nowMs + 7 * dayMs);
        order = { ...order, ...next };
      }
    }),
  );
});
