// `accel-central certificate` as a shell runs it, against the real API: orders are listed, and one is tried now.

import { afterAll, beforeAll, expect, test } from "vitest";
import { certificateCommand } from "../../src/cli/central-certificate.ts";
import { openApi, type Api } from "../central/api/api-harness.ts";
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

async function run(...args: readonly string[]): Promise<string> {
  let printed = "";
  const env = { ACCEL_API_URL: `http://127.0.0.1:${api.port}`, ACCEL_API_TOKEN: token };
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
  expect(listed).toMatch(/^id +domain +state +names +next at +until +error\n/);
  expect(listed).toMatch(/^\d+ +www\.example\.com +failed +www\.example\.com .* it answers 404\n/m);
  expect(JSON.parse(await run("try", id, "--json"))).toMatchObject({
    id: Number(id),
    next_at: api.clock.toISOString(),
  });
  expect(await run("try", id)).toContain(api.clock.toISOString());
  await expect(run("try", "900000000")).rejects.toThrow(
    /refused: .*there is no certificate order 900000000/,
  );
});

test.each([
  [[], /takes orders, or try/],
  [["try"], /takes orders, or try/],
  [["orders", "1"], /takes orders, or try/],
  [["try", "first"], /certificate try takes a number, not first/],
])("%j is refused, with what it takes", async (args, why) => {
  await expect(run(...args)).rejects.toThrow(why);
});
