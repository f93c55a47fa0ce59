// Published lists and a real access log: the counts that an independent program came to, and who counts where bad and VIP lists overlap.
//
// The lists lie beside the repository; without them nothing is tested here, and the run says so.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BotJudge } from "../../../../src/agent/bots/decisions/evidence.ts";
import { AddressReader } from "../../../../src/core/addresses/address-reader.ts";
import { AddressTable } from "../../../../src/core/addresses/address-table.ts";
import {
  changeRangeSet,
  planTable,
  RangeSetBuilder,
} from "../../../../src/core/addresses/range-set.ts";
import type { SetElement } from "../../../../src/core/addresses/set-digest.ts";
import { hostSetOf, tableOf } from "../../../support/bot-tables.ts";

const data = join(import.meta.dirname, "../../../../../shared/data");
const isAbsent = !existsSync(data);

const linesOf = (path: string): readonly string[] =>
  readFileSync(join(data, path), "utf8")
    .split("\n")
    .filter((line) => line !== "");
/** Every element is named after its list, as a customer would mark it; a range in two lists of a set is there once. */
function listOf(...paths: readonly string[]): readonly SetElement[] {
  const ranges = new Map<string, SetElement>();
  for (const path of paths)
    for (const range of linesOf(path)) {
      const bot = path.replace(/^.*\/|\.(?:ipv[46]|cidr|level).*$/g, "");
      ranges.set(`${bot} ${range}`, { bot, range });
    }
  return [...ranges.values()];
}
const googlebot = ["ip/vip/googlebot.ipv4.txt", "ip/vip/googlebot.ipv6.txt"];
const vips = [
  ...["bing", "duckassistbot", "duckduckbot", "openai", "perplexity", "statuscake"].map(
    (name) => `ip/vip/${name}.ipv4.txt`,
  ),
  ...["facebook", "googlebot", "pingdom", "telegram", "twitter"].flatMap((name) => [
    `ip/vip/${name}.ipv4.txt`,
    `ip/vip/${name}.ipv6.txt`,
  ]),
];
const clouds = ["alibaba", "huawei", "tencent"].map(
  (name) => `ip/bad/anubis.${name}-cloud.cidr.txt`,
);
const lists: Readonly<Record<string, readonly string[]>> = {
  "dev.ipsum.l1": ["ip/bad/ipsum.level1.txt"],
  "dev.ipsum.l3": ["ip/bad/ipsum.level3.txt"],
  "dev.anubis": clouds,
  "dev.vip(lord-alfred)": vips,
  "dev.googlebot": googlebot,
  "dev.cloud.all": ["ip/cloud/all.ipv4.txt", "ip/cloud/all.ipv6_merged.txt"],
};

type Expected = {
  readonly sets: Readonly<Record<string, number>>;
  readonly logs: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly overlap: Readonly<Record<string, readonly [number, readonly string[]]>>;
};
const reader = new AddressReader();
const isIn = (table: AddressTable, ip: string): boolean => {
  const family = reader.read(ip);
  return family !== 0 && table.ownerOf(family, reader.words) !== 0;
};
const firstOf = (range: string): string => range.replace(/\/.*/, "");
const open = (name: string): AddressTable =>
  new AddressTable(tableOf(listOf(...(lists[name] ?? []))));

test.skipIf(isAbsent)("a real log against real lists: the counts of an independent program", () => {
  const text = readFileSync(join(data, "expected/ip-membership.json"), "utf8");
  const expected = JSON.parse(text) as Expected; // Its own file, read as it was written.
  const tables = Object.keys(lists).map((name) => [name, open(name)] as const);
  const sizes = Object.entries(lists).map(([name, paths]) => [name, listOf(...paths).length]);
  expect(Object.fromEntries(sizes)).toEqual(expected.sets);
  for (const [path, counts] of Object.entries(expected.logs)) {
    const ips = linesOf(path.replace(/^dev\//, "")).map((line) => line.split(" ", 1)[0] ?? "");
    expect([ips.length, new Set(ips).size]).toEqual([counts["requests"], counts["distinct_ips"]]);
    for (const [name, table] of tables) {
      const held = ips.filter((ip) => isIn(table, ip));
      expect([name, { ips: new Set(held).size, requests: held.length }]).toEqual([
        name,
        counts[name],
      ]);
    }
  }
  const opened = new Map(tables);
  for (const [what, [count]] of Object.entries(expected.overlap)) {
    const [inner = "", outer = ""] = what.split(" first-address inside ");
    const table = opened.get(outer) ?? open(outer);
    const firsts = listOf(...(lists[inner] ?? [])).map(({ range }) => firstOf(range));
    expect([what, firsts.filter((ip) => isIn(table, ip)).length]).toEqual([what, count]);
  }
});

test.skipIf(isAbsent)(
  "the Googlebot addresses that a list of bad ones names are Googlebot's; a deny pair still holds",
  () => {
    const bad = listOf("ip/bad/ipsum.level1.txt");
    const vip = listOf(...googlebot);
    const google = new AddressTable(tableOf(vip));
    const both = bad.map(({ range }) => range).filter((ip) => isIn(google, ip));
    expect(both.length).toBe(34);
    const badSet = hostSetOf(bad);
    const judge = (
      allow: readonly string[],
      deny: readonly string[],
      mode: "enforce" | "monitor",
    ) => {
      const said = allow.includes("googlebot") ? 1 : deny.includes("googlebot") ? 2 : 0;
      const rules = {
        mode,
        unknownBotsCanAccess: null,
        allow: new Set(allow),
        deny: new Set(deny),
      };
      return new BotJudge({ ...rules, vip: [hostSetOf(vip, [0, said])], bad: [badSet] });
    };
    for (const ip of both) {
      const verdict = judge([], [], "enforce").verdict(ip, undefined);
      expect([ip, verdict]).toMatchObject([
        ip,
        { kind: "allow", reason: "vip-set", bot: "googlebot" },
      ]);
    }
    const [ip = ""] = both;
    expect(judge([], ["googlebot"], "enforce").verdict(ip, undefined).reason).toBe("deny-pair");
    expect(judge(["googlebot"], [], "enforce").verdict(ip, undefined).reason).toBe("allow-pair");
    const outside = bad.map(({ range }) => range).find((one) => !isIn(google, one)) ?? "";
    expect(judge([], [], "monitor").verdict(outside, undefined).kind).toBe("would-block");
  },
);

test.skipIf(isAbsent)(
  "VIP networks within bad ones are VIPs, the bad networks around them stay bad",
  () => {
    const vip = listOf(...vips);
    const nets = new Set(vip.flatMap(({ range }) => /^\d+\.\d+\./.exec(range) ?? []));
    const bad = [...nets].map((net) => ({ bot: "around", range: `${net}0.0/16` }));
    const judge = new BotJudge({
      mode: "enforce",
      unknownBotsCanAccess: true,
      allow: new Set(),
      deny: new Set(),
      vip: [hostSetOf(vip)],
      bad: [hostSetOf(bad)],
    });
    const table = new AddressTable(tableOf(vip));
    let [inside, around] = [0, 0];
    for (const { range } of bad) {
      for (let at = 0; at < 65_536; at += 61) {
        const ip = `${range.replace(/0\.0\/16$/, "")}${at >> 8}.${at & 255}`;
        const { reason } = judge.verdict(ip, undefined);
        if (reason !== (isIn(table, ip) ? "vip-set" : "bad-set"))
          throw new Error(`${ip}: ${reason}`);
        if (reason === "vip-set") inside++;
        else around++;
      }
    }
    expect(inside).toBeGreaterThan(1_000);
    expect(around).toBeGreaterThan(100_000);
  },
);

test.skipIf(isAbsent)(
  "a real list that shrinks and grows step by step is the list that is built at once",
  () => {
    const levels = [
      "ip/bad/ipsum.level3.txt",
      "ip/bad/ipsum.level5.txt",
      "ip/bad/ipsum.level2.txt",
    ];
    const build = (elements: readonly SetElement[]) => {
      const builder = new RangeSetBuilder();
      for (const { bot, range } of elements) builder.add(bot, range);
      return builder.build();
    };
    const bytesOf = (set: ReturnType<typeof build>): Buffer => {
      const plan = planTable(set);
      const buffer = new SharedArrayBuffer(plan.bytes);
      plan.write({ buffer, at: 0 });
      return Buffer.from(new Uint8Array(buffer));
    };
    let have = listOf(...clouds);
    let set = build(have);
    for (const level of levels) {
      const want = [...listOf(...clouds), ...listOf(level)];
      const [before, after] = [have, want].map((some) => new Set(some.map(({ range }) => range)));
      const changed = changeRangeSet(
        set,
        want.filter(({ range }) => before?.has(range) === false),
        have.filter(({ range }) => after?.has(range) === false),
      );
      if (changed === undefined) throw new Error("the change does not fit");
      expect(bytesOf(changed).equals(bytesOf(build(want)))).toBe(true);
      [set, have] = [changed, want];
    }
  },
);
