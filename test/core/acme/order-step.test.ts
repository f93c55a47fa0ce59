// How an order goes on: what happened, and what follows.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  heldUpMs,
  nextOrder,
  type OrderEvent,
  type AcmeOrderState,
} from "../../../src/core/acme/order-step.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = { nowMs: 1_000 * dayMs, random: 0.5 };

const fresh: AcmeOrderState = {
  phase: "resting",
  attempts: 0,
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
    error: null,
    ordered: [],
    leftOut: {},
    dueMs: renewMs,
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
  const second = nextOrder({ ...asking, attempts: 1 }, refused(b), now);
  expect(second.leftOut).toEqual(b);
  const next = nextOrder({ ...fresh, attempts: 2, leftOut: b }, { kind: "begun" }, now);
  expect(next.ordered).toEqual(["a.example"]);
  const all = { "a.example": "x", "b.example": "y" };
  expect(nextOrder({ ...asking, attempts: 1 }, refused(all), now).leftOut).toEqual({});
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
        order = { ...order, ...next };
      }
    }),
  );
});
