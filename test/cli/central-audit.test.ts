// `accel-central audit` against a whole central: which lines it shows, how, and that it goes on with what comes.

import { userInfo } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { auditCommand } from "../../src/cli/central-audit.ts";
import { centralBotsCommand } from "../../src/cli/central-bots.ts";
import { customerCommand } from "../../src/cli/central-customer.ts";
import { tokenCommand } from "../../src/cli/central-token.ts";
import { userCommand } from "../../src/cli/central-user.ts";
import type { Command } from "../../src/base/command.ts";
import { openStore } from "../../src/central/store/engine/database.ts";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./command-rig.ts";

let stateDir: string;
let url: string;
let token: string;
let customer: string;
const account = userInfo().username;
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  stateDir = stack.use(tempDir()).path;
  ({ url } = stack.use(await start(settingsOf(stateDir))));
  const trial = await call(url, "POST", "/trial/", undefined, { username: "alice" });
  [token, customer] = [String(trial["token"]), String(trial["customer_id"])];
  await call(url, "POST", "/domain/", token, { name: "a.example.com" });
  await say(customerCommand, "add", "Other Ltd");
  await say(userCommand, "add", "amy", "--customer", customer);
  await say(userCommand, "grant", "amy", "publish");
  await say(tokenCommand, "issue", "amy");
  await say(tokenCommand, "revoke", "--user", "amy");
  const list = join(stateDir, "list.txt");
  writeFileSync(list, "192.0.2.0/24\n");
  await say(centralBotsCommand, "import", "a.example.com", "bad", "scrapers", list);
});
afterAll(async () => stack.disposeAsync());

async function say(command: Command, ...args: readonly string[]): Promise<string> {
  return run(command, [...args, "--state-dir", stateDir]);
}

type Line = { readonly at: string; readonly action: string; readonly who: string };

async function lines(...args: readonly string[]): Promise<readonly Line[]> {
  const said = await say(auditCommand, "--json", ...args);
  return said
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

const byApi = ["POST /trial/", "POST /domain/"];
const byOperator = ["user add", "user grant", "token issue", "token revoke", "bots import"];

test("tells every change in order, with who and what", async () => {
  const all = await lines();
  expect(all.map(({ action }) => action)).toEqual([...byApi, "customer add", ...byOperator]);
  expect(all[4]).toMatchObject({
    via: "operator",
    who: account,
    customer_id: Number(customer),
    change: { username: "amy", permission: "publish" },
  });
  expect(all.at(-1)).toMatchObject({
    who: account,
    ids: { domain: "a.example.com", set: "bad", bot: "scrapers" },
    change: { replace: false, added: 1 },
  });
});

test("by customer, by user, by time, the newest", async () => {
  const actions = async (...args: readonly string[]) =>
    (await lines(...args)).map(({ action }) => action);
  expect(await actions("--customer", customer)).toEqual([...byApi, ...byOperator]);
  expect(await actions("--customer", "999999")).toEqual([]);
  expect(await actions("--user", "alice")).toEqual(byApi);
  expect(await actions("--user", account)).toEqual(["customer add", ...byOperator]);
  expect(await actions("--lines", "2")).toEqual(byOperator.slice(-2));
  expect(await actions("--lines", "0")).toEqual([]);
  expect(await actions("--since", "1h")).toHaveLength(8);
  expect(await actions("--since", "1h", "--lines", "1")).toHaveLength(1);
  const [, second] = await lines();
  expect(await actions("--since", String(second?.at))).not.toContain("POST /trial/");
  expect(await actions("--since", "2999-01-01T00:00:00Z")).toEqual([]);
  await expect(actions("--since", "10m")).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining("or how long ago, as 30s, 10min"),
  });
});

test("for a person: a line each", async () => {
  const said = (await say(auditCommand)).split("\n");
  expect(said[0]).toMatch(
    /^\d{4}-\d\d-\d\dT\S+Z {2}anyone from 127\.0\.0\.1 {2}customer \d+ {2}POST \/trial\/ {2}user_id=\d+ customer_id=\d+ {2}← username=alice$/,
  );
  expect(said[4]).toContain(`${account} here  customer ${customer}  user grant`);
});

test("follows what comes, until it is interrupted", async () => {
  const stop = new AbortController();
  let said = "";
  const followed = auditCommand.run({
    version: "0.0.0",
    program: "/nowhere/main.ts",
    args: ["--follow", "--lines", "1", "--json", "--state-dir", stateDir],
    out: (text) => void (said += text),
    colour: false,
    env: {},
    stop: stop.signal,
    onReload: () => undefined,
  });
  await until("what was there is shown", () => said.includes('"bots import"'));
  await call(url, "POST", "/deployment-site/", token, { tags: "later" });
  await until("what came is shown", () => said.includes('"POST /deployment-site/"'));
  expect(said.split("\n")).toHaveLength(3);
  stop.abort("test");
  await followed;
});

test("what is rare is found in a long trail", async () => {
  {
    await using store = await openStore(join(stateDir, "central.db"), () => new Date());
    const line = { via: "api", who: "noise", action: "noise", ids: "{}", change: "{}" } as const;
    const nulls = { user_id: null, customer_id: null, address: null, request_id: null };
    const at = new Date().toISOString();
    for (let n = 0; n < 25; n++)
      await store
        .insertInto("audit")
        .values(Array.from({ length: 1_000 }, () => ({ at, ...line, ...nulls })))
        .execute();
  }
  await say(customerCommand, "add", "Late Ltd");
  const actions = async (...args: readonly string[]) =>
    (await lines(...args)).map(({ action }) => action);
  expect(await actions("--user", "alice", "--lines", "1")).toEqual(["POST /deployment-site/"]);
  expect(await actions("--user", account, "--lines", "2")).toEqual(["bots import", "customer add"]);
  expect(await actions("--user", "alice", "--since", "1h")).toHaveLength(3);
  expect(await actions("--since", "1h")).toHaveLength(25_010);
  expect(await actions("--lines", "20001")).toHaveLength(20_001);
});

test.each([
  ["--since yesterday", /yesterday is no time/],
  ["--lines many", /--lines takes a number/],
  ["--customer acme", /--customer takes a number/],
  ["alice", /alice/],
])("audit %s is bad usage", async (args, message) => {
  await expect(say(auditCommand, ...args.split(" "))).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringMatching(message),
  });
});
