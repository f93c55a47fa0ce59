// docs/bots.md, read and done: after each example that changes lists or policy, visitors with real user agents get the verdict that the document promises.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { publishedAgents } from "../../../support/published-agents.ts";
import { createJudge } from "../../../../src/agent/bots/decisions/evidence.ts";
import { openClaimedBots } from "../../../../src/agent/bots/unreviewed/user-agents.ts";
import {
  effectivePolicies,
  type StoredPolicy,
} from "../../../../src/central/store/bots/effective-policy.ts";
import { composeState, type CompiledSet } from "../../../../src/core/serving/compose-state.ts";
import type { Verdict } from "../../../../src/core/serving/verdict.ts";
import { tableOf } from "../../../support/bot-tables.ts";

const document = readFileSync(join(import.meta.dirname, "../../../../docs/bots.md"), "utf8");
const blocks = [...document.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(
  ([, language = "", text = ""]) => ({ language, text }),
);
const host = "shop.example.com";
const stranger = "2001:db8::7";
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

type Pairs = readonly { readonly domain: string; readonly bot: string }[];
type Access = { readonly unknown_bots_can_access: boolean };
type Policy = {
  readonly allow_access: Pairs;
  readonly deny_access: Pairs;
  readonly general_policy: Access;
  readonly per_domain_policy: readonly { readonly domain: string; readonly policy: Access }[];
};
type Mark = {
  readonly name: string;
  /** Not in the answer to `?return=summary`. */
  readonly ip_addresses?: readonly string[];
};
type Example = { readonly path: string; readonly body: object; readonly answer: unknown };

const examples = blocks.flatMap(({ language, text }, at): readonly Example[] => {
  const [, json, path = ""] =
    /^curl -H "\$AUTH" --json '([^']*)' "\$API(\/[^"]*)"\n$/.exec(text) ?? [];
  if (language !== "sh" || json === undefined) return [];
  return [{ path, body: JSON.parse(json), answer: JSON.parse(blocks[at + 1]?.text ?? "") }];
});

/** What central holds after the examples so far. */
class Customer {
  readonly #lists = {
    vip: new Map<string, readonly string[]>(),
    bad: new Map<string, readonly string[]>(),
  };
  policy: Policy = {
    allow_access: [],
    deny_access: [],
    general_policy: { unknown_bots_can_access: false },
    per_domain_policy: [],
  };

  take({ path, body, answer }: Example): void {
    if (path === "/bot-access-policy/") this.policy = { ...this.policy, ...body };
    else {
      const { name, ip_addresses: ranges } = answer as Mark;
      const list = this.#lists[path.includes("vip") ? "vip" : "bad"];
      const [, marked = ""] = /^\/mark-as-[a-z]+-bot\/([^/]+)\//.exec(path) ?? [];
      list.set(name, ranges ?? [...(list.get(name) ?? []), marked]);
    }
  }

  listed(kind: "vip" | "bad"): readonly { readonly bot: string; readonly range: string }[] {
    return [...this.#lists[kind]].flatMap(([bot, ranges]) =>
      ranges.map((range) => ({ bot, range })),
    );
  }

  verdict(ip: string, agent: string): Verdict {
    const domains = [{ name: host, sub_domains: [] }];
    const stored: StoredPolicy = {
      pairs: [
        ...this.policy.allow_access.map((pair) => ({ ...pair, list: "allow" as const })),
        ...this.policy.deny_access.map((pair) => ({ ...pair, list: "deny" as const })),
      ],
      general: Number(this.policy.general_policy.unknown_bots_can_access),
      perDomain: new Map(
        this.policy.per_domain_policy.map(({ domain, policy }) => [
          domain,
          Number(policy.unknown_bots_can_access),
        ]),
      ),
    };
    const set = (_: string, kind: "vip" | "bad"): CompiledSet | undefined => {
      const elements = this.listed(kind);
      return elements.length === 0 ? undefined : { version: 1, table: tableOf(elements) };
    };
    const state = composeState(1, {
      domains,
      policies: effectivePolicies(domains, stored),
      set,
      viewset: () => undefined,
      local: () => undefined,
    });
    const bots = state.domains[0]?.hosts[0]?.bots;
    if (bots === undefined) throw new Error("no host");
    return judge(bots, ip, agent, host);
  }
}

const claimed = openClaimedBots();
const judge = createJudge(claimed);

describe("the examples of docs/bots.md", () => {
  const customer = new Customer();

  test.each(examples)("$path $body", (example) => {
    customer.take(example);
    const vip = customer.listed("vip").map(({ range }) => range.replace(/\/.*/, ""));
    const bad = customer.listed("bad").map(({ range }) => range.replace(/\/.*/, ""));
    for (const ip of vip) expect(customer.verdict(ip, browser).reason).toBe("vip-set");
    // An address in both lists is in the VIP list.
    for (const ip of bad) expect(customer.verdict(ip, browser).reason).toMatch(/^(bad|vip)-set$/);
    const { allow_access: allowed, deny_access: denied } = customer.policy;
    expect(pairsThatHold(customer, denied, "deny-pair")).toEqual(denied);
    expect(pairsThatHold(customer, allowed, "allow-pair")).toEqual(allowed);
  });

  test("are there, a denied and an allowed bot among them", () => {
    expect(examples.length).toBeGreaterThanOrEqual(8);
    const all = JSON.stringify(examples);
    expect(all).toContain(`"deny_access":[{"domain":"${host}","bot":"AhrefsBot"}]`);
    expect(all).toContain(`"allow_access":[{"domain":"${host}","bot":"Twitterbot"}]`);
  });

  /** Those that decide about every published agent in which the bot's name stands as a word, and about one at least. */
  function pairsThatHold(customerNow: Customer, pairs: Pairs, reason: string): Pairs {
    return pairs.filter(({ bot }) => {
      // The older name stands in no agent: it is made of a pattern.
      const word = new RegExp(
        bot === "AhrefsBotSiteAudit" ? "Ahrefs(?:Bot|SiteAudit)/" : `^(?:.*\\W)?${bot}/`,
      );
      const agents = publishedAgents.filter(
        (agent) => word.test(agent) && claimed(agent) !== undefined,
      );
      const wrong = agents.filter(
        (agent) => customerNow.verdict(stranger, agent).reason !== reason,
      );
      expect(wrong).toEqual([]);
      return agents.length > 0;
    });
  }
});

test("a denied AhrefsBot is blocked where unknown bots are let in, and AhrefsSiteAudit is not", () => {
  const customer = new Customer();
  for (const example of examples.filter(({ body }) => JSON.stringify(body).includes('"AhrefsBot"')))
    customer.take(example);
  const visit = (agent: string): string => customer.verdict(stranger, agent).reason;
  expect(visit("Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)")).toBe(
    "deny-pair",
  );
  expect(visit("Mozilla/5.0 (compatible; AhrefsSiteAudit/6.1; +http://ahrefs.com/robot/)")).toBe(
    "unreviewed-allowed",
  );
  expect(visit(browser)).toBe("not-a-bot");
});

const rows = [...document.matchAll(/^\| `([^`]+)` \| `([^`]+)` \|$/gm)].map(
  ([, agent = "", name = ""]) => [name, agent] as const,
);

test.each(rows)("%s is the name of %s", (name, agent) => {
  expect(claimed(agent)?.name).toBe(name);
});

test("the document has names of agents", () => {
  expect(rows.length).toBeGreaterThanOrEqual(10);
});
