// `accel-central images`: the days of a domain, and what it says where it cannot show them.

import { afterAll, beforeAll, expect, test } from "vitest";
import { describeFailure } from "../../src/base/command.ts";
import { imagesCommand } from "../../src/cli/central-images.ts";
import { openApi, type Api } from "../central/api/api-harness.ts";

let api: Api;
let token: string;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("shell");
  await api.call("POST", "/domain/", { token, body: { name: "www.example.com" } });
  const domain = await api.store.selectFrom("domains").select("id").executeTakeFirstOrThrow();
  const day = (at: string, made: number, blocked: number) => ({
    domain_id: domain.id,
    day: at,
    made,
    blocked,
    when_told: null,
  });
  await api.store
    .insertInto("image_days")
    .values([day("2031-05-05", 20_000, 318), day("2031-05-06", 4, 0)])
    .execute();
});
afterAll(async () => api[Symbol.asyncDispose]());

async function run(...args: readonly string[]): Promise<string> {
  let out = "";
  await imagesCommand.run({
    version: "0.0.0",
    program: "/nowhere/main.ts",
    args,
    out: (text) => void (out += text),
    colour: false,
    env: { ACCEL_API_URL: `http://127.0.0.1:${api.port}`, ACCEL_API_TOKEN: token },
    stop: new AbortController().signal,
    onReload: () => undefined,
  });
  return out;
}

test("a table of days, the newest last; JSON is the API's answer", async () => {
  expect(await run("www.example.com")).toBe(
    "day         made   held back\n2031-05-05  20000  318\n2031-05-06  4      0\n",
  );
  expect(JSON.parse(await run("www.example.com", "--json"))).toMatchObject({
    domain: "www.example.com",
    days: [{ day: "2031-05-06" }, { day: "2031-05-05" }],
  });
});

test("nothing was made yet", async () => {
  await api.call("POST", "/domain/", { token, body: { name: "new.example.com" } });
  expect(await run("new.example.com")).toBe("no variants were made or held back yet\n");
});

test("no domain, or one that is not there", async () => {
  await expect(run()).rejects.toMatchObject({ code: "USAGE", message: "images takes a domain" });
  const failure: unknown = await run("other.example.com").catch((error: unknown) => error);
  expect(describeFailure("accel-central", "images", failure)).toContain(
    'domain "other.example.com"',
  );
});
