// Who proved itself is let in whatever others do from its address, and only as long as what it proved itself with holds.

import { afterEach, beforeEach, expect, test } from "vitest";
import { basic } from "../../support/wheels.ts";
import { openApi, type Api } from "./api-harness.ts";
import { PackageRig, password } from "./package-rig.ts";

/** How many of as many attempts are looked at: the others are told to wait. */
async function lookedAt(count: number, attempt: (no: number) => Promise<number>): Promise<number> {
  let looked = 0;
  for (let no = 0; no < count; no++) if ((await attempt(no)) !== 429) looked++;
  return looked;
}

test("a token that is revoked is one of the wrong ones: it is limited as they are", async () => {
  await using api: Api = await openApi();
  const token = await api.trial("someone");
  const ask = async (given: string, address = "192.0.2.7"): Promise<number> => {
    const headers = { "x-forwarded-for": address };
    return (await api.call("GET", "/deployment-site/", { token: given, headers })).status;
  };
  expect(await ask(token)).toBe(200);
  // What others send from its address does not shut it out.
  expect(await lookedAt(110, async (no) => ask(`wrong${no}`))).toBe(100);
  expect(await ask(token)).toBe(200);
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  await api.store.updateTable("tokens").set({ when_revoked: api.clock.toISOString() }).execute();
  const statuses: number[] = [];
  expect(
    await lookedAt(110, async () => {
      const status = await ask(token);
      statuses.push(status);
      return status;
    }),
  ).toBe(100);
  expect(new Set(statuses)).toEqual(new Set([401, 429]));
  expect(await ask(token)).toBe(429);
  expect(await ask(token, "192.0.2.8")).toBe(401);
});

let rig: PackageRig;
beforeEach(async () => {
  rig = await PackageRig.open();
});
afterEach(async () => rig[Symbol.asyncDispose]());

const upload = async (address: string, words: string): Promise<number> => {
  const headers = { ...basic("publisher", words), "x-forwarded-for": address };
  return (await rig.send("0.1", [], headers)).status;
};
/** Let in; what was sent is no form with a file. */
const letIn = 400;

test("the first wrong password after a right one counts as well", async () => {
  expect(await upload("192.0.2.7", password)).toBe(letIn);
  expect(await lookedAt(30, async (no) => upload("192.0.2.7", `guess ${no}`))).toBe(20);
});

test("each time, however often who is right comes in between from elsewhere", async () => {
  let wrong = 0;
  for (let round = 0; round < 30; round++) {
    // Known at this address from now on.
    if ((await upload("192.0.2.7", password)) !== letIn) break;
    if ((await upload("192.0.2.7", `guess ${round}`)) !== 401) break;
    wrong++;
  }
  expect(wrong).toBe(20);
});

test("who was right at one address is nobody known at another", async () => {
  expect(await upload("192.0.2.7", password)).toBe(letIn);
  const guess = async (no: number): Promise<number> => upload("198.51.100.9", `guess ${no}`);
  expect(await lookedAt(30, guess)).toBe(20);
  // The name has used up its attempts, and so has the address; who proved itself has not.
  expect(await upload("198.51.100.9", password)).toBe(429);
  expect(await upload("192.0.2.7", password)).toBe(letIn);
});
