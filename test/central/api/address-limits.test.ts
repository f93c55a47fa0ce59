// Limits by address: who holds many addresses has not many times as much, and nobody uses up what all have together.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openApi, type Api } from "./api-harness.ts";

let api: Api;
beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 5, trialsTotal: 12, recoveriesPerAddress: 5 });
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(() => {
  api.clock = new Date(api.clock.getTime() + 7_200_000);
});

let no = 0;
async function trial(address: string, username = `user${++no}`): Promise<number> {
  const headers = { "x-forwarded-for": address };
  return (await api.call("POST", "/trial/", { body: { username }, headers })).status;
}
async function recover(address: string): Promise<number> {
  const [path, body] = ["/tokens/start-recovery/", { username: "nobody", email: "n@x.org" }];
  return (await api.call("POST", path, { body, headers: { "x-forwarded-for": address } })).status;
}
async function good(count: number, ask: (n: number) => Promise<number>): Promise<number> {
  const statuses: number[] = [];
  for (let n = 0; n < count; n++) statuses.push(await ask(n));
  return statuses.filter((status) => status !== 429).length;
}
const hex = (n: number): string => n.toString(16);

describe("one holder of many IPv6 networks", () => {
  test("has at one /64 what an address has, at its /56 twice as much, at its /48 four times", async () => {
    expect(await good(8, async (n) => recover(`2001:db8:1:1::${hex(n)}`))).toBe(5);
    expect(await good(8, async (n) => recover(`2001:db8:1:${hex(n + 2)}::1`))).toBe(5);
    expect(await good(20, async (n) => recover(`2001:db8:1:${hex((n + 1) * 256)}::1`))).toBe(10);
    expect(await recover("2001:db8:2::1")).toBe(200);
    expect(await recover("192.0.2.1")).toBe(200);
  });

  test("keeps nobody else from recovering a token", async () => {
    expect(await good(250, async (n) => recover(`2001:db8:3:${hex(n)}::1`))).toBe(10);
    expect(await recover("203.0.113.77")).toBe(200);
  });
});

describe("what all may start together", () => {
  test("is not used up by trials of a name that is in use", async () => {
    expect(await trial("192.0.2.1", "taken")).toBe(201);
    for (let n = 0; n < 30; n++) expect(await trial(`198.51.100.${n}`, "taken")).toBe(409);
    expect(await trial("203.0.113.1")).toBe(201);
  });

  test("is by trials that were made", async () => {
    for (let n = 0; n < 12; n++) expect(await trial(`198.51.100.${n}`)).toBe(201);
    expect(await trial("203.0.113.1")).toBe(429);
  });
});
