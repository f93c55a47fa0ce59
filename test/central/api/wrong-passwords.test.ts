// Guesses of passwords that come at once: no more are looked at than the limit says, and they shut nobody out who is right.

import { afterEach, beforeEach, expect, test } from "vitest";
import { basic } from "../../support/wheels.ts";
import type { Reply } from "./api-harness.ts";
import { PackageRig, password } from "./package-rig.ts";

let rig: PackageRig;
beforeEach(async () => {
  rig = await PackageRig.open();
});
afterEach(async () => rig[Symbol.asyncDispose]());

async function from(address: string, name: string, words: string): Promise<Reply> {
  return rig.send("0.1", [], { ...basic(name, words), "x-forwarded-for": address });
}
async function checked(replies: readonly Promise<Reply>[]): Promise<number> {
  return (await Promise.all(replies)).filter(({ status }) => status === 401).length;
}
const times = <T>(count: number, make: (n: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, n) => make(n));
/** Let in; what was sent is no form with a file. */
const letIn = 400;

test("of guesses that come at once for a name no more are looked at than of those one after the other", async () => {
  const guess = async (n: number) => from(`198.51.100.${n}`, "publisher", `guess ${n}`);
  expect(await checked(times(60, guess))).toBe(20);
  rig.api.clock = new Date(rig.api.clock.getTime() + 6_000);
  expect(await checked(times(60, guess))).toBe(1);
});

test("of one address only a few wait, whatever IPv6 networks it has", async () => {
  const guess = async (n: number) =>
    from(`2001:db8:1:${n.toString(16)}::1`, `nobody${n}`, "guess guess");
  expect(await checked(times(60, guess))).toBeLessThanOrEqual(20);
});

test("guesses for other names that wait do not turn away who is right", async () => {
  const guesses = times(100, async (n) => from(`203.0.113.${n}`, `nobody${n}`, "guess guess"));
  expect((await from("192.0.2.7", "publisher", password)).status).toBe(letIn);
  expect(await checked(guesses)).toBe(100);
});

test("right passwords that come at once use nothing up", async () => {
  for (let round = 0; round < 6; round++) {
    const replies = await Promise.all(
      times(5, async () => from("192.0.2.7", "publisher", password)),
    );
    expect(replies.map(({ status }) => status)).toEqual(times(5, () => letIn));
  }
  expect(await checked(times(8, async (n) => from("192.0.2.7", "reader", `guess ${n}`)))).toBe(8);
});

test("who shares the address of one that was right may not guess without end, at once either", async () => {
  expect((await from("192.0.2.7", "publisher", password)).status).toBe(letIn);
  const guess = async (n: number) => from("192.0.2.7", "publisher", `guess ${n}`);
  expect(await checked(times(60, guess))).toBeLessThanOrEqual(21);
});
