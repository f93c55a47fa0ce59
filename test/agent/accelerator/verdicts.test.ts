// Every verdict row of docs/bots.md, for every visitor and policy that it fits, from what central stores to the answer on the socket, the metric and the
// record: policy compiled as central does, state composed as the agent does, judged by the worker's own judge in the worker's own pipeline.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createJudge } from "../../../src/agent/bots/decisions/evidence.ts";
import { openClaimedBots } from "../../../src/agent/bots/unreviewed/user-agents.ts";
import {
  effectivePolicies,
  type StoredPolicy,
} from "../../../src/central/store/bots/effective-policy.ts";
import { composeState, type CompiledSet } from "../../../src/core/serving/compose-state.ts";
import { tableOf } from "../../support/bot-tables.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { ask, Edge } from "./edge.ts";
import { everyCase, readVerdictTable, rowOf, type Access, type Case } from "./verdict-table.ts";

const main = "shop.example.com";
const sub = `static.${main}`;
const vipBot = "Googlebot";
const badBot = "AhrefsBot";
const claimedBot = "curl";
const addresses = {
  "in the VIP list": "198.51.100.7",
  "in the bad list": "192.0.2.7",
  "in both lists": "203.0.113.7",
  "in no list": "2001:db8::7",
} as const;
const agents = {
  "no bot's": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  none: undefined,
  "a bot's without addresses": "curl/8.5.0",
  "a bot's with addresses":
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
} as const;
const set = (bot: string, ...ranges: readonly string[]): CompiledSet => ({
  version: 1,
  table: tableOf(ranges.map((range) => ({ bot, range }))),
});
const listed = {
  [`vip/${main}`]: set(vipBot, "198.51.100.0/24", "203.0.113.0/28"),
  [`bad/${main}`]: set(badBot, "192.0.2.0/24", "203.0.113.0/24"),
};
type Sets = Readonly<Record<string, CompiledSet | undefined>>;

const dir = tempDir();
const edge = new Edge({
  trusted: ["127.0.0.1"],
  judge: createJudge(openClaimedBots(), (domain, { name }) => unreviewed.push(`${domain} ${name}`)),
});
const unreviewed: string[] = [];
let version = 0;
beforeAll(async () => {
  mkdirSync(join(dir.path, "views"));
  writeFileSync(join(dir.path, "views", "index.html"), "home");
  await edge.listen();
});
afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

function publish(stored: StoredPolicy, mode: "enforce" | "monitor", sets: Sets): void {
  const shared = { name: sub, share_views_and_views_dir_with_main_domain: true };
  const domains = [{ name: main, sub_domains: [shared] }];
  const devlove = { domains: { [main]: { bots: { mode } } } };
  const state = composeState(++version, {
    domains,
    policies: effectivePolicies(domains, stored),
    set: (host, kind) => sets[`${kind}/${host}`],
    viewset: () => undefined,
    local: () => ({ viewsDir: join(dir.path, "views"), devlove }),
  });
  edge.publish(state);
}

type Met = {
  readonly status: number;
  readonly decision: string | undefined;
  readonly verdict: string | undefined;
  readonly bot: string | null | undefined;
  readonly cache: string | undefined;
};

async function visit(from: string, agent: string | undefined, host = main): Promise<Met> {
  const before = edge.records.length;
  const headers = { "x-forwarded-for": from, ...(agent !== undefined && { "user-agent": agent }) };
  const { status, headers: answered } = await ask(edge, "/", { headers, host });
  const record = await until("a record", () => edge.records[before]);
  const { verdict, bot, cache } = record;
  return { status, decision: answered["x-accel-decision"], verdict, bot, cache };
}

const kinds = ["allow", "block", "would-block"] as const;
const metricOf = { allow: "allowed", block: "blocked", "would-block": "would_block" } as const;

async function countedAll(reason: string): Promise<Record<(typeof kinds)[number], number>> {
  const text = await edge.registry.metrics();
  const counted = (kind: (typeof kinds)[number]): number => {
    const line = `accel_agent_${metricOf[kind]}_total{domain="${main}",reason="${reason}"} `;
    const found = text.split("\n").find((one) => one.startsWith(line));
    return Number(found?.slice(line.length) ?? 0);
  };
  return {
    allow: counted("allow"),
    block: counted("block"),
    "would-block": counted("would-block"),
  };
}

function botOf({ address, agent }: Case): string | null {
  if (address === "in the bad list") return badBot;
  if (address !== "in no list") return vipBot;
  if (agent === "a bot's with addresses") return vipBot;
  return agent === "a bot's without addresses" ? claimedBot : null;
}

const said = (access: Access): number | null =>
  access === "none" ? null : Number(access === "can access");

function storedFor(one: Case): StoredPolicy {
  const bot = botOf(one) ?? claimedBot;
  const pairs: StoredPolicy["pairs"][number][] = [];
  if (one.pair !== "none") pairs.push({ list: one.pair, domain: main, bot });
  // Where the address is held, what is said about the claimed name counts nothing.
  const isHeld = one.address !== "in no list";
  if (isHeld && one.pair !== "none" && one.agent === "a bot's without addresses")
    pairs.push({ list: one.pair === "allow" ? "deny" : "allow", domain: main, bot: claimedBot });
  const own = said(one.domain);
  return {
    general: said(one.general),
    perDomain: new Map(own === null ? [] : [[main, own]]),
    pairs,
  };
}

const rows = readVerdictTable();
const cases = everyCase().map((one) => ({ ...one, row: rowOf(rows, one) }));

test("the table of docs/bots.md has a row for every visitor before every policy, and no row for nothing", () => {
  expect(rows).toHaveLength(19);
  expect(cases).toHaveLength(432);
  expect(cases.filter(({ row }) => row === undefined)).toEqual([]);
  expect(rows.filter((row) => cases.every((one) => one.row !== row))).toEqual([]);
});

describe.each(["enforce", "monitor"] as const)("mode %s", (mode) => {
  test.each(rows.map((row) => ({ ...row, row, when: row.cells.join(" · ") })))(
    "$when → $verdict, $reason",
    async ({ row, verdict, reason }) => {
      const fitting = cases.filter((one) => one.row === row);
      const isKeptOut = verdict === "blocked";
      const kind = isKeptOut ? (mode === "enforce" ? "block" : "would-block") : "allow";
      const before = await countedAll(reason);
      unreviewed.length = 0;
      edge.decisions.length = 0;
      for (const one of fitting) {
        publish(storedFor(one), mode, listed);
        const met = await visit(addresses[one.address], agents[one.agent]);
        expect(met, JSON.stringify(one)).toEqual({
          status: kind === "block" ? 403 : 200,
          decision: kind === "block" ? expect.stringMatching(/^[0-9a-f]{16}$/) : undefined,
          verdict: `${kind} ${reason}`,
          bot: botOf(one),
          cache: kind === "block" ? "blocked" : expect.stringMatching(/hit|miss/),
        });
      }
      const after = await countedAll(reason);
      for (const name of kinds)
        expect(after[name] - before[name], name).toBe(name === kind ? fitting.length : 0);
      const against = kind === "allow" ? [] : fitting;
      expect(edge.decisions).toMatchObject(
        against.map((one) => ({
          host: main,
          clientIp: addresses[one.address],
          userAgent: agents[one.agent],
          verdict: { kind, reason, bot: botOf(one) },
        })),
      );
      const unreviewedCases = fitting.filter(
        (one) => one.address === "in no list" && botOf(one) !== null,
      );
      expect(unreviewed).toEqual(unreviewedCases.map((one) => `${main} ${botOf(one)}`));
    },
  );
});

describe("a sub-domain", () => {
  const nobody: StoredPolicy = { general: null, perDomain: new Map(), pairs: [] };
  const pair = (list: "allow" | "deny", domain: string, bot: string) => ({ list, domain, bot });
  const browser = agents["no bot's"];

  test.each([
    ["has its main domain's lists", {}, "203.0.113.99", `block bad-set`, badBot],
    [
      "has its own before its main domain's",
      { [`bad/${sub}`]: set("Own", "192.0.2.0/24") },
      "192.0.2.7",
      "block bad-set",
      "Own",
    ],
    [
      "has VIP elements of either before bad ones of either",
      { [`bad/${sub}`]: set("Own", "198.51.100.7") },
      "198.51.100.7",
      "allow vip-set",
      vipBot,
    ],
    [
      "has VIP elements of its own before its main domain's bad ones",
      { [`vip/${sub}`]: set("Friend", "192.0.2.7") },
      "192.0.2.7",
      "allow vip-set",
      "Friend",
    ],
    [
      "keeps what is its own from its main domain",
      { [`bad/${sub}`]: set("Own", "2001:db8::/32") },
      "2001:db8::7",
      "block bad-set",
      "Own",
    ],
  ] as const)("%s", async (what, own, from, verdict, bot) => {
    publish(nobody, "enforce", { ...listed, ...own });
    expect(await visit(from, browser, sub)).toMatchObject({ verdict, bot });
    if (what.startsWith("keeps"))
      expect(await visit(from, browser)).toMatchObject({ verdict: "allow not-a-bot" });
  });

  test.each([
    ["has its main domain's policy", new Map([[main, 1]]), [], "allow unreviewed-allowed"],
    [
      "has its own policy first",
      new Map([
        [main, 1],
        [sub, 0],
      ]),
      [],
      "block unreviewed-blocked",
    ],
    ["has its main domain's pairs", new Map(), [pair("allow", main, "curl")], "allow allow-pair"],
    [
      "has its own pairs first",
      new Map(),
      [pair("allow", main, "curl"), pair("deny", sub, "curl")],
      "block deny-pair",
    ],
  ] as const)("%s", async (_what, perDomain, pairs, verdict) => {
    publish({ ...nobody, perDomain, pairs }, "enforce", listed);
    expect(await visit(addresses["in no list"], "curl/8.5.0", sub)).toMatchObject({ verdict });
  });
});

test("in one list the most specific element names the bot", async () => {
  const nested = tableOf([
    { bot: "Outer", range: "192.0.2.0/24" },
    { bot: "Inner", range: "192.0.2.0/28" },
  ]);
  const stored = {
    general: null,
    perDomain: new Map(),
    pairs: [{ list: "allow", domain: main, bot: "Inner" } as const],
  };
  publish(stored, "enforce", { [`bad/${main}`]: { version: 1, table: nested } });
  expect(await visit("192.0.2.1", undefined)).toMatchObject({
    verdict: "allow allow-pair",
    bot: "Inner",
  });
  expect(await visit("192.0.2.77", undefined)).toMatchObject({
    verdict: "block bad-set",
    bot: "Outer",
  });
});
