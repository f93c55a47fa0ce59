// What operators are told of a visitor, from real sets, policies and decisions: on a main domain, on its sub-domain, before and after a change.

import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { DecisionRing } from "../../src/agent/bots/decisions/decision-ring.ts";
import {
  DecisionTeller,
  type DecisionLine,
} from "../../src/agent/bots/decisions/decision-teller.ts";
import { ElementFinder } from "../../src/agent/bots/sets/element-finder.ts";
import { createClock } from "../../src/agent/accelerator/clock.ts";
import { RateTable } from "../../src/agent/accelerator/limits/rate-table.ts";
import { RequestRates } from "../../src/agent/accelerator/limits/request-rates.ts";
import { RatesSeen } from "../../src/agent/accelerator/limits/rates-seen.ts";
import { judgeVisitor } from "../../src/agent/bots/decisions/evidence.ts";
import { SetStore } from "../../src/agent/bots/sets/set-store.ts";
import { openClaimedBots } from "../../src/agent/bots/unreviewed/user-agents.ts";
import { openAgentDb, type AgentDb } from "../../src/agent/link/agent-db.ts";
import {
  checkVisitor,
  listBots,
  whyAddress,
  whyDecision,
  type VisitorParts,
} from "../../src/agent/why-visitor.ts";
import { compileLimits } from "../../src/core/limits/site-limits.ts";
import type { Decision } from "../../src/core/serving/decision.ts";
import type { SiteInput } from "../../src/core/serving/effective-devlove.ts";
import { composeState, type EffectivePolicy } from "../../src/core/serving/compose-state.ts";
import { Registry } from "../../src/base/metrics.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import type { ServingState } from "../../src/core/serving/serving-state.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../src/core/addresses/set-digest.ts";
import { checkedText, decidedText, listedText } from "../../src/cli/visitor-text.ts";
import { tablesOf } from "../support/bot-tables.ts";

const main = "a.example";
const sub = "www.a.example";

class Rig implements Disposable {
  readonly db: AgentDb = openAgentDb(":memory:", "/nowhere");
  readonly store = new SetStore(this.db.sqlite);
  readonly #elements = new ElementFinder(this.db.sqlite);
  readonly #ring = new DecisionRing(100);
  readonly #claimedBot = openClaimedBots();
  policies: readonly EffectivePolicy[] = [];
  state: ServingState = { version: 0, domains: [] };

  /** In a database without a set: the whole set `to`. */
  put(host: string, kind: "bad" | "vip", to: readonly SetElement[]): void {
    const from = this.store.list().find((set) => set.host === host && set.kind === kind);
    const before = this.db.sqlite
      .prepare<[string, string], SetElement>(
        "SELECT bot, range FROM bot_element WHERE host = ? AND kind = ?",
      )
      .all(host, kind);
    const isIn = (list: readonly SetElement[], { bot, range }: SetElement): boolean =>
      list.some((one) => one.bot === bot && one.range === range);
    const digest = parseSha256(changedSetDigest(emptySetDigest, to, []));
    if (digest === undefined) throw new Error("no digest");
    const outcome = this.store.applyDelta({
      domain: host,
      set: kind,
      from_version: from?.version ?? 0,
      to_version: (from?.version ?? 0) + 1,
      added: to.filter((one) => !isIn(before, one)),
      removed: before.filter((one) => !isIn(to, one)),
      count: to.length,
      digest,
      shrink_meant: true,
    });
    expect(outcome.kind).toBe("applied");
  }

  async compose(mode: "enforce" | "monitor" = "enforce"): Promise<void> {
    const { sets } = await tablesOf(this.db.sqlite).build(this.store.list(), 0);
    const subDomain = { name: sub, share_views_and_views_dir_with_main_domain: true };
    this.state = composeState(1, {
      domains: [{ name: main, sub_domains: [subDomain] }],
      policies: this.policies,
      set: (host, kind) => sets.get(`${kind}/${host}`),
      viewset: () => undefined,
      local: () => ({
        viewsDir: "/nowhere",
        devlove: {
          domains: {
            [main]: { bots: { mode }, limits: this.limits },
            ...(this.subDomain !== undefined && { [sub]: this.subDomain }),
          },
        },
      }),
    });
  }

  limits: NonNullable<SiteInput["limits"]> = {};
  /** What the document says of the sub-domain; undefined: it does not name it. */
  subDomain: SiteInput | undefined;
  readonly #rates = new RatesSeen(new Registry(), "a test");

  parts(): VisitorParts {
    return {
      state: this.state,
      claimedBot: this.#claimedBot,
      elements: this.#elements,
      decisions: {
        find: (id) => this.#ring.find(id),
        about: (address, limit) => this.#ring.about(address, limit),
        facts: () => ({ kept: this.#ring.size, dropped: 2 }),
      },
      rates: this.#rates,
      policies: new Map(this.policies.map((one) => [one.domain, one])),
      policiesChangedAt: new Date("2031-01-01T00:00:00Z"),
    };
  }

  /** As a worker decides and notes it. */
  visit(ip: string, userAgent: string, host = main): string {
    const { bots } = this.state.domains[0]?.hosts.find(({ name }) => name === host) ?? {};
    if (bots === undefined) throw new Error(`no ${host}`);
    const claimed = this.#claimedBot(userAgent);
    const verdict = judgeVisitor(bots, ip, claimed);
    const policyOf = bots.unknownBotsPolicyOf;
    const atMs = 1_900_000_000_000;
    return this.#note({ atMs, host, clientIp: ip, userAgent, verdict, policyOf });
  }

  /** Asks so often as a worker does; the last one must be too much. */
  ask(ip: string, times: number, on = main): string {
    const host = this.state.domains[0]?.hosts.find(({ name }) => name === on);
    if (host === undefined || host.site === null) throw new Error("no site");
    const rates = new RequestRates({
      table: new RateTable(this.#rates.memory),
      tally: { limited: () => {}, uncounted: () => {} },
      decisions: { note: (decision) => this.#note(decision) },
      clock: createClock(),
    });
    const verdict = { kind: "allow", reason: "not-a-bot", bot: null } as const;
    const judged = {
      served: { kind: "served", domain: main, host, compiled: undefined },
      verdict,
    } as const;
    const client = { text: ip, isProxied: false, forwardedFor: ip, scheme: "https" } as const;
    const request = { method: "POST", client, fields: [], startedWallMs: 0, judged };
    const rules = compileLimits(host.site).requests("/login");
    const asked = Array.from({ length: times }, () => rates.ask(rules, request));
    expect(asked.map(({ kind }) => kind).lastIndexOf("within")).toBe(times - 2);
    return asked.at(-1)?.decisionId ?? "";
  }

  #note(decision: Decision): string {
    const { port1, port2 } = new MessageChannel();
    const lines: string[] = [];
    using teller = new DecisionTeller(port2, 1);
    port2.postMessage = ({ lines: told }: { lines: string }) => void lines.push(told);
    const id = teller.note(decision);
    teller[Symbol.dispose]();
    port1.close();
    this.#ring.add(JSON.parse(lines.join("")) as DecisionLine);
    return id;
  }

  [Symbol.dispose](): void {
    this.db[Symbol.dispose]();
  }
}

const policy = (domain: string, over: Partial<EffectivePolicy> = {}): EffectivePolicy => ({
  domain,
  unknown_bots_can_access: null,
  allow: [],
  deny: [],
  ...over,
});

const visitor = { ip: "192.0.2.1", userAgent: undefined, host: undefined };

test.each([
  [
    "the name of a bot stands far out",
    `Mozilla/5.0 (X11; ${"Linux; ".repeat(60)}compatible; SomeNewBot/1.0)`,
  ],
  ["it is longer than a verdict looks at", `curl/8.5.0 ${"x".repeat(2_000)}`],
])(
  "what would happen now to a long user agent is what happened, where nothing has changed: %s",
  async (_, userAgent) => {
    using rig = new Rig();
    rig.policies = [policy(main)];
    await rig.compose();
    const { verdict, reason, bot } =
      checkVisitor(rig.parts(), { ...visitor, userAgent, host: main }).hosts[0] ?? {};
    const { now } = whyDecision(rig.parts(), rig.visit(visitor.ip, userAgent));
    expect(now).toMatchObject({ verdict, reason, bot });
  },
);

test("a bad address: set, version, name, most specific range, since when; on the sub-domain its own pair", async () => {
  using rig = new Rig();
  rig.put(main, "bad", [{ bot: "evil", range: "192.0.2.0/24" }]);
  rig.put(main, "bad", [
    { bot: "evil", range: "192.0.2.0/24" },
    { bot: "evil", range: "192.0.2.0/28" },
    { bot: "other", range: "192.0.2.0/26" },
  ]);
  rig.policies = [policy(main), policy(sub, { allow: ["evil"] })];
  await rig.compose();
  const before = Date.now() - 5_000;
  const { address, claims, hosts } = checkVisitor(rig.parts(), {
    ...visitor,
    ip: "::ffff:192.0.2.1",
  });
  expect([address, claims]).toEqual(["192.0.2.1", null]);
  const set = { host: main, kind: "bad", version: 2, range: "192.0.2.0/28", version_now: 2 };
  expect(hosts).toMatchObject([
    {
      host: main,
      mode: "enforce",
      verdict: "block",
      reason: "bad-set",
      bot: "evil",
      set,
      policy: null,
    },
    {
      host: sub,
      verdict: "allow",
      reason: "allow-pair",
      set,
      policy: { kind: "pair", says: "allow", domain: sub, changed_at: "2031-01-01T00:00:00.000Z" },
    },
  ]);
  expect(Date.parse(hosts[0]?.set?.since ?? "")).toBeGreaterThan(before);
  expect(Date.parse(hosts[0]?.set?.changed_at ?? "")).toBeGreaterThan(before);
  expect(
    checkVisitor(rig.parts(), { ...visitor, host: sub }).hosts.map(({ host }) => host),
  ).toEqual([sub]);
});

test("a claimed name: general policy, domain policy, none; a pair that cannot help; a pair of the main domain", async () => {
  using rig = new Rig();
  const asked = { ...visitor, userAgent: "curl/8.5.0" };
  const told = async (...policies: readonly EffectivePolicy[]) => {
    rig.policies = policies;
    await rig.compose();
    return checkVisitor(rig.parts(), asked).hosts.map(({ reason, policy: said }) => [
      reason,
      said === null ? null : said.kind,
      said !== null && "domain" in said ? said.domain : null,
    ]);
  };
  expect(await told(policy(main))).toEqual([
    ["unreviewed-blocked-by-default", "default", null],
    ["unreviewed-blocked-by-default", "default", null],
  ]);
  expect(await told(policy(main, { unknown_bots_can_access: false }))).toEqual([
    ["unreviewed-blocked", "general", null],
    ["unreviewed-blocked", "general", null],
  ]);
  const open = { unknown_bots_can_access: true, unknown_bots_policy_of: main };
  const shut = { unknown_bots_can_access: false, unknown_bots_policy_of: sub };
  expect(await told(policy(main, open), policy(sub, shut))).toEqual([
    ["unreviewed-allowed", "domain", main],
    ["unreviewed-blocked", "domain", sub],
  ]);
  expect(await told(policy(main, { deny: ["curl"] }), policy(sub, { deny: ["curl"] }))).toEqual([
    ["deny-pair", "pair", main],
    ["deny-pair", "pair", main],
  ]);
  rig.put(main, "vip", [{ bot: "curl", range: "198.51.100.0/24" }]);
  await told(policy(main, { allow: ["curl"] }));
  expect(checkVisitor(rig.parts(), asked).hosts[0]?.why).toContain("does not help");
});

test("a pair with a name that the bot had before is told by that name", async () => {
  using rig = new Rig();
  const userAgent = "Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)";
  rig.policies = [policy(main), policy(sub, { deny: ["yandex.com/bots"] })];
  await rig.compose();
  const { claims, hosts } = checkVisitor(rig.parts(), { ...visitor, userAgent });
  expect(claims).toMatchObject({
    name: "YandexImages",
    class: "crawler",
    aliases: ["yandex.com/bots"],
  });
  expect(hosts[1]).toMatchObject({
    reason: "deny-pair",
    bot: "YandexImages",
    policy: { kind: "pair", says: "deny", domain: sub, bot: "yandex.com/bots" },
    why: expect.stringContaining(
      `the pair of ${sub} and yandex.com/bots, another name of this bot, says that it can not access`,
    ),
    would_change_it: expect.arrayContaining([
      `taking the pair of ${sub} and yandex.com/bots out of deny_access`,
    ]),
  });
  const told = whyDecision(rig.parts(), rig.visit("192.0.2.1", userAgent, sub));
  expect(told).toMatchObject({ policy: { domain: sub, bot: "yandex.com/bots" } });
  rig.put(main, "vip", [{ bot: "yandex.com/bots", range: "198.51.100.0/24" }]);
  rig.policies = [policy(main, { allow: ["YandexImages"] })];
  await rig.compose();
  const [first] = checkVisitor(rig.parts(), { ...visitor, userAgent }).hosts;
  expect(first).toMatchObject({ reason: "fake-blocked-by-default" });
  expect(first?.why).toContain("a fake;");
  expect(first?.why).toContain("does not help");
});

test("a decision is explained as it was, and beside it what would happen now", async () => {
  using rig = new Rig();
  rig.put(main, "bad", [{ bot: "evil", range: "192.0.2.0/24" }]);
  await rig.compose("monitor");
  const id = rig.visit("192.0.2.1", "curl/8.5.0");
  rig.put(main, "bad", []);
  rig.policies = [policy(main, { unknown_bots_can_access: true })];
  await rig.compose();
  const facts = whyDecision(rig.parts(), id);
  expect(facts).toMatchObject({
    decision: id,
    at: "2030-03-17T17:46:40.000Z",
    host: main,
    address: "192.0.2.1",
    user_agent: "curl/8.5.0",
    verdict: "would-block",
    reason: "bad-set",
    bot: "evil",
    set: { host: main, kind: "bad", version: 1, range: null, version_now: 2 },
    now: {
      verdict: "allow",
      reason: "unreviewed-allowed",
      bot: "curl",
      policy: { kind: "general" },
    },
  });
  expect(decidedText(facts)).toContain("version 1, now 2 since");
  expect(whyAddress(rig.parts(), visitor).decisions).toMatchObject({
    total: 1,
    newest: [{ decision: id, verdict: "would-block", bot: "evil" }],
  });
  rig.state = { version: 2, domains: [] };
  expect(whyDecision(rig.parts(), id).now).toBeNull();
  expect(() => whyDecision(rig.parts(), "0123456789abcdef")).toThrow(
    /decision 0123456789abcdef is not known: 1 are kept since .* and 2 came too fast/,
  );
});

test("limits: what an address has left is shown without being spent, and a request too many is explained by its id", async () => {
  using rig = new Rig();
  rig.limits = {
    requests: [{ path: "/login", methods: ["POST"], rate: 2, per_s: 3_600, burst: 3 }],
  };
  rig.put(main, "vip", [{ bot: "good", range: "203.0.113.0/24" }]);
  await rig.compose();
  const rule = "POST /login: 2 in 3600 s, 3 at once";
  const seen = (ip = visitor.ip) => checkVisitor(rig.parts(), { ...visitor, ip }).hosts[0]?.limits;
  for (let look = 0; look < 5; look++) expect(seen()).toEqual([{ rule, mode: "enforce", left: 3 }]);
  const id = rig.ask(visitor.ip, 4);
  expect(seen()).toEqual([{ rule, mode: "enforce", left: 0 }]);
  expect(seen("192.0.2.9")).toEqual([{ rule, mode: "enforce", left: 3 }]);
  expect(seen("203.0.113.1")).toEqual([]); // VIP bots are not counted.
  expect(checkedText(checkVisitor(rig.parts(), visitor))).toContain(
    `    limits of requests:\n      ${rule}; 0 more now\n`,
  );
  const facts = whyDecision(rig.parts(), id);
  expect(facts).toMatchObject({
    decision: id,
    address: visitor.ip,
    verdict: "limit",
    reason: "request-rate",
    set: null,
    policy: null,
    what: "refused with 429",
    why: `${visitor.ip} asked more often than the rule allows: ${rule}`,
    now: { verdict: "allow" },
  });
  expect(decidedText(facts)).toContain("then: refused with 429 (request-rate)");
  expect(whyAddress(rig.parts(), visitor).decisions.newest[0]).toMatchObject({ verdict: "limit" });
});

test.each([
  ["the main domain", main, undefined, `the devlove of ${main}`],
  [
    "a sub-domain that it does not name",
    sub,
    undefined,
    `the devlove of ${main}, which ${sub} follows`,
  ],
  ["a sub-domain that it names", sub, {}, `the devlove of ${main}, under ${sub}`],
])(
  "a request too many, and a bot, on %s: the devlove that says so is named",
  async (_, host, subDomain, devlove) => {
    using rig = new Rig();
    const limits = { requests: [{ path: "/login", rate: 2, per_s: 3_600, burst: 3 }] };
    rig.limits = limits;
    rig.subDomain = subDomain === undefined ? undefined : { limits };
    await rig.compose();
    const id = rig.ask(visitor.ip, 4, host);
    const blocked = rig.visit(visitor.ip, "curl/8.5.0", host);
    const changes = (about: string) => whyDecision(rig.parts(), about).would_change_it;
    expect(changes(id)).toContain(
      `a larger rate or burst of this rule in limits.requests of ${devlove}`,
    );
    expect(changes(blocked)).toContain(
      `bots.mode: monitor in ${devlove}: it lets through and counts`,
    );
    rig.limits = {};
    rig.subDomain = undefined;
    await rig.compose();
    expect(changes(id)).toContain(`nothing in a devlove: ${host} has this rule no more`);
  },
);

test("the sets and policies in force, and what was committed but is not", async () => {
  using rig = new Rig();
  rig.put(main, "bad", [{ bot: "evil", range: "192.0.2.0/24" }]);
  rig.put(sub, "vip", []);
  rig.policies = [
    policy(main, { unknown_bots_can_access: true, unknown_bots_policy_of: main, deny: ["x"] }),
  ];
  await rig.compose("monitor");
  rig.put(main, "bad", [{ bot: "evil", range: "192.0.2.0/25" }]);
  const listed = listBots(rig.parts());
  expect(listed).toMatchObject({
    sets: [
      {
        host: main,
        kind: "bad",
        version: 2,
        count: 1,
        in_force: 1,
        changed_at: expect.any(String),
      },
      { host: sub, kind: "vip", version: 1, count: 0, in_force: 1 },
    ],
    hosts: [
      {
        host: main,
        mode: "monitor",
        unknown_bots: "allowed",
        said_by: `the policy of ${main}`,
        denied_pairs: 1,
      },
      {
        host: sub,
        mode: "monitor",
        unknown_bots: "allowed",
        said_by: `the policy of ${main}`,
        denied_pairs: 1,
      },
    ],
  });
  // The shapes are those that the commands print.
  expect(listedText(listed)).toContain("version 1 in force");
  expect(checkedText(whyAddress(rig.parts(), visitor))).toContain("blocked with 403 (bad-set)");
});

test.each([
  [null, "blocked by default"],
  [false, "blocked"],
  [true, "allowed"],
])("where the policy says %s of unknown bots, they are listed as %s", async (said, word) => {
  using rig = new Rig();
  rig.policies = [policy(main, { unknown_bots_can_access: said })];
  await rig.compose();
  expect(listBots(rig.parts()).hosts).toMatchObject([
    { host: main, unknown_bots: word },
    { host: sub, unknown_bots: word },
  ]);
});
