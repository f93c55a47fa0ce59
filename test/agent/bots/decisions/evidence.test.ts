// The verdict on a visitor, from sets and user agent: who counts where several sets hold the address, and that this is what a slow search finds.

import fc from "fast-check";
import { expect, test, vi } from "vitest";
import {
  BotJudge,
  createJudge,
  judgeVisitor,
} from "../../../../src/agent/bots/decisions/evidence.ts";
import { AddressTable } from "../../../../src/core/addresses/address-table.ts";
import { formatIp, parseIp, parseRange } from "../../../../src/core/addresses/ip.ts";
import { pairAllow, pairDeny, type HostBots } from "../../../../src/core/serving/serving-state.ts";
import { botClasses, type BotClass } from "../../../../src/core/serving/verdict.ts";
import type { SetElement } from "../../../../src/core/addresses/set-digest.ts";
import { hostSetOf } from "../../../support/bot-tables.ts";

const bots: HostBots = {
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set(["Googlebot", "friend"]),
  deny: new Set(),
  vip: [hostSetOf([{ bot: "Googlebot", range: "66.249.64.0/19" }], [0, pairAllow])],
  bad: [
    hostSetOf([{ bot: "own", range: "192.0.2.7" }]),
    hostSetOf([
      { bot: "evil", range: "192.0.2.0/24" },
      { bot: "evil", range: "2001:db8::/32" },
    ]),
  ],
};

const rows = [
  ["192.0.2.1", undefined, "block", "bad-set", "evil"],
  ["192.0.2.7", undefined, "block", "bad-set", "own"],
  ["::ffff:192.0.2.1", undefined, "block", "bad-set", "evil"],
  ["::ffff:c000:201", undefined, "block", "bad-set", "evil"],
  ["2001:db8::5", "curl", "block", "bad-set", "evil"],
  ["66.249.66.1", "Googlebot", "allow", "allow-pair", "Googlebot"],
  ["203.0.113.5", "Googlebot", "block", "fake-blocked-by-default", "Googlebot"],
  ["203.0.113.5", "friend", "allow", "allow-pair", "friend"],
  ["203.0.113.5", undefined, "allow", "not-a-bot", null],
  ["not an address", undefined, "allow", "not-a-bot", null],
  ["", undefined, "allow", "not-a-bot", null],
] as const;

test.each(rows)("%s claiming %s: %s because %s", (ip, claimed, kind, reason, bot) => {
  const claim = claimed === undefined ? undefined : { name: claimed };
  expect(judgeVisitor(bots, ip, claim)).toMatchObject({ kind, reason, bot });
});

test("a worker's judge says the same, whichever state it is asked about", () => {
  const [unreviewed, fakes]: [string[], string[]] = [[], []];
  const judge = createJudge(
    (agent) =>
      agent === undefined ? undefined : { name: agent, description: null, botClass: "crawler" },
    (domain, { name, isFake }) => {
      unreviewed.push(`${domain} ${name}`);
      if (isFake) fakes.push(name);
    },
  );
  const nobody: HostBots = { ...bots, vip: [], bad: [] };
  for (const [ip, claimed, kind, reason, bot] of rows) {
    expect(judge(bots, ip, claimed, "a.example")).toMatchObject({ kind, reason, bot });
    if (claimed === undefined) expect(judge(nobody, ip, claimed, "a").kind).toBe("allow");
  }
  // Each bot whose address is in no set, whatever was decided about it.
  expect(unreviewed).toEqual(["a.example Googlebot", "a.example friend"]);
  expect(fakes).toEqual(["Googlebot"]);
});

test("a claim is a fake where the VIP list has the addresses of the bot, by any of its names, and nowhere else", () => {
  const judge = new BotJudge(bots);
  expect(judge.isFake({ name: "Googlebot" })).toBe(true);
  // Published under the name Googlebot.
  expect(judge.isFake({ name: "Googlebot-Image" })).toBe(true);
  expect(judge.isFake({ name: "OfOld", aliases: ["Googlebot"] })).toBe(true);
  // The bad list says nothing of who is who.
  expect(judge.isFake({ name: "friend" })).toBe(false);
  expect(judge.isFake({ name: "bingbot" })).toBe(false);
  expect(judge.verdict("192.0.3.1", { name: "Googlebot-Image" }).reason).toBe(
    "fake-blocked-by-default",
  );
  expect(new BotJudge({ ...bots, vip: [] }).isFake({ name: "Googlebot" })).toBe(false);
});

test("what is said of a name by its other names is said of no other claim to it", () => {
  const judge = new BotJudge(bots);
  expect(judge.isFake({ name: "OfOld", aliases: ["Googlebot"] })).toBe(true);
  expect(judge.isFake({ name: "OfOld" })).toBe(false);
  expect(judge.isFake({ name: "OfOld", aliases: ["bingbot"] })).toBe(false);
});

test("who claims to be of a class is treated as the policy says of the class, else of unknown bots", () => {
  const said = { ...bots, unknownBotsCanAccess: false, classes: { feed: true } };
  const reasonOf = (rules: HostBots, botClass?: BotClass): string =>
    judgeVisitor(rules, "203.0.113.5", { name: "It", ...(botClass && { botClass }) }).reason;
  expect(botClasses.map((one) => reasonOf(said, one))).toEqual([
    "unreviewed-blocked",
    "unreviewed-allowed",
    "unreviewed-blocked",
  ]);
  expect(reasonOf(said)).toBe("unreviewed-blocked");
  const others = { ...bots, unknownBotsCanAccess: true, classes: { library: false } };
  expect(botClasses.map((one) => reasonOf(others, one))).toEqual([
    "unreviewed-allowed",
    "unreviewed-allowed",
    "unreviewed-blocked",
  ]);
  // A worker asks for the class of the agent, and lists and pairs come first.
  const judge = createJudge((name = "") => ({ name, description: null, botClass: "feed" }));
  expect(judge(said, "203.0.113.5", "It", "a.example").reason).toBe("unreviewed-allowed");
  expect(judge(said, "203.0.113.5", "Googlebot", "a.example").reason).toBe("fake-allowed");
  expect(judge(said, "192.0.2.1", "It", "a.example").reason).toBe("bad-set");
  const refused = { ...said, deny: new Set(["It"]) };
  expect(judge(refused, "203.0.113.5", "It", "a.example").reason).toBe("deny-pair");
});

test("each claim is looked up once, and lists are not searched again for who comes often, whatever names were made up before", () => {
  using asked = vi.spyOn(BotJudge.prototype, "isFake");
  using searched = vi.spyOn(AddressTable.prototype, "ownerNamed");
  const judge = createJudge((name = "") => ({ name, description: null, botClass: "crawler" }));
  const visit = (name: string): string => judge(bots, "203.0.113.5", name, "a.example").reason;
  for (let no = 0; no < 300; no++) visit(`made-up-${no}`);
  expect(asked).toHaveBeenCalledTimes(300);
  for (const name of ["curl", "Googlebot"]) visit(name);
  searched.mockClear();
  for (let time = 0; time < 10; time++) {
    expect(visit("curl")).toBe("unreviewed-blocked-by-default");
    expect(visit("bingbot")).toBe("unreviewed-blocked-by-default");
  }
  expect(searched).toHaveBeenCalledTimes(1);
  // What was remembered first is forgotten.
  visit("made-up-0");
  expect(searched).toHaveBeenCalledTimes(2);
});

const names = ["a", "b", "c"];
const element: fc.Arbitrary<SetElement> = fc.record({
  bot: fc.constantFrom(...names),
  range: fc
    .record({ host: fc.integer({ min: 0, max: 15 }), size: fc.integer({ min: 0, max: 4 }) })
    .map(({ host, size }) => `192.0.2.${(host >> size) << size}/${32 - size}`),
});
const list = fc.array(element, { maxLength: 6 });

/** Most specific range that holds the address, of equal ones the first by name. */
function holderOf(elements: readonly SetElement[], text: string): string | undefined {
  const address = parseIp(text);
  const holding = elements.flatMap(({ bot, range }) => {
    const parsed = parseRange(range);
    if (!parsed.ok || address === undefined) return [];
    const { first, last } = parsed.range;
    return first <= address.value && address.value <= last ? [{ bot, size: last - first }] : [];
  });
  holding.sort((x, y) => (x.size === y.size ? (x.bot < y.bot ? -1 : 1) : x.size < y.size ? -1 : 1));
  return holding[0]?.bot;
}

test("VIP before bad, the host's own set before its main domain's, then the most specific range; the pair is that bot's", () => {
  fc.assert(
    fc.property(
      fc.record({ ownVip: list, mainVip: list, ownBad: list, mainBad: list }),
      fc.array(fc.constantFrom(0, pairAllow, pairDeny), { minLength: 3, maxLength: 3 }),
      ({ ownVip, mainVip, ownBad, mainBad }, said) => {
        const setOf = (elements: readonly SetElement[]) => {
          const held = names.filter((name) => elements.some(({ bot }) => bot === name));
          return hostSetOf(elements, [0, ...held.map((name) => said[names.indexOf(name)] ?? 0)]);
        };
        const judge = new BotJudge({
          ...bots,
          vip: [ownVip, mainVip].map(setOf),
          bad: [ownBad, mainBad].map(setOf),
        });
        for (let host = 0n; host < 18n; host++) {
          const ip = formatIp({ family: 4, value: 0xc000_0200n + host });
          const vip = holderOf(ownVip, ip) ?? holderOf(mainVip, ip);
          const bot = vip ?? holderOf(ownBad, ip) ?? holderOf(mainBad, ip);
          const pair = bot === undefined ? 0 : said[names.indexOf(bot)];
          const list = bot === undefined ? undefined : vip === undefined ? "bad" : "vip";
          const ofPair =
            pair === pairAllow ? "allow-pair" : pair === pairDeny ? "deny-pair" : undefined;
          const ofSet = list === undefined ? undefined : `${list}-set`;
          // The second time it is the one that was made before.
          for (let time = 0; time < 2; time++) {
            const verdict = judge.ofAddress(ip);
            expect([verdict?.set?.kind, verdict?.bot, verdict?.reason]).toEqual([
              list,
              bot,
              ofPair ?? ofSet,
            ]);
          }
        }
      },
    ),
    { numRuns: 150 },
  );
});
