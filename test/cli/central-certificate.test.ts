// `accel-central certificate` as a shell runs it, against the real API: orders are listed, and one is tried now.

import { afterAll, beforeAll, expect, test } from "vitest";
import { certificateCommand } from "../../src/cli/central-certificate.ts";
import { member, openApi, type Api } from "../central/api/api-harness.ts";
import { addOrder } from "../support/api-world.ts";
import { contextOf } from "./command-rig.ts";

const domain = "www.example.com";
let api: Api;
let token: string;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("ada");
});
afterAll(async () => api[Symbol.asyncDispose]());

const run = async (...args: readonly string[]): Promise<string> => runAs(token, ...args);

async function runAs(as: string, ...args: readonly string[]): Promise<string> {
  let printed = "";
  const env = { ACCEL_API_URL: `http://127.0.0.1:${api.port}`, ACCEL_API_TOKEN: as };
  const out = (text: string): void => void (printed += text);
  await certificateCommand.run({
    ...contextOf(args, new AbortController().signal),
    env,
    out,
  });
  return printed;
}

test("orders are listed, and one that waits is tried now", async () => {
  expect(await run("orders")).toBe("no devlove orders certificates\n");
  await api.call("POST", "/domain/", { token, body: { name: domain } });
  const id = await addOrder(api, domain);
  const listed = await run("orders");
  expect(listed).toMatch(/^id +domain +state +attempts +names +next at +until +error\n/);
  expect(listed).toMatch(
    /^\d+ +www\.example\.com +failed +1 +www\.example\.com .* it answers 404\n/m,
  );
  expect(JSON.parse(await run("try", id, "--json"))).toMatchObject({
    id: Number(id),
    next_at: api.clock.toISOString(),
  });
  expect(await run("try", id)).toBe(
    [
      `order ${id} of www.example.com is tried now: central takes it up within seconds.`,
      "`accel-central certificate orders` tells what comes of it. Until then it shows how the order stood before: failed, 1 attempt.",
      "",
    ].join("\n"),
  );
  await expect(run("try", "900000000")).rejects.toThrow(
    /refused: .*there is no certificate order 900000000/,
  );
});

test("a refusal says what helps: its token may not, or it is too early", async () => {
  const name = "shop.example.com";
  await api.call("POST", "/domain/", { token, body: { name } });
  const id = await addOrder(api, name);
  const tryFrom = new Date(api.clock.getTime() + 60_000).toISOString();
  const { store } = api;
  await store
    .updateTable("acme_orders")
    .set({ try_from: tryFrom })
    .where("id", "=", Number(id))
    .execute();
  await expect(run("try", id)).rejects.toMatchObject({
    code: "CENTRAL_REFUSED",
    message: expect.stringMatching(/429 .*; try again in 60 s$/),
    hint: "Nothing was changed. Wait for as long as the answer says, and try again.",
  });
  const { body } = await api.call("POST", "/tokens/", { token, body: { name: "r", role: "read" } });
  await expect(runAs(member(body, "token"), "try", id)).rejects.toMatchObject({
    code: "CENTRAL_REFUSED",
    message: expect.stringContaining("needs the role write"),
    hint: "The token does not allow this; the message says what it lacks. Take another one.",
  });
});

test.each([
  [[], /takes orders, or try/],
  [["try"], /takes orders, or try/],
  [["orders", "1"], /takes orders, or try/],
  [["try", "first"], /certificate try takes a number, not first/],
])("%j is refused, with what it takes", async (args, why) => {
  await expect(run(...args)).rejects.toThrow(why);
});
