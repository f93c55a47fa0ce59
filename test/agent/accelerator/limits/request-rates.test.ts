// What a worker asks the table, and what it tells of it: the address is read where a rule counts, and a rule that refuses is told before one that is monitored.

import { expect, test } from "vitest";
import { rateMemory, RateTable } from "../../../../src/agent/accelerator/limits/rate-table.ts";
import {
  RequestRates,
  type LimitedRequest,
} from "../../../../src/agent/accelerator/limits/request-rates.ts";
import { compileLimits } from "../../../../src/core/limits/site-limits.ts";
import {
  effectiveDevlove,
  type SiteInput,
} from "../../../../src/core/serving/effective-devlove.ts";
import { stateOf } from "../edge.ts";

const main = "www.example.com";
type Rules = NonNullable<NonNullable<SiteInput["limits"]>["requests"]>;

function limitsOf(requests: Rules) {
  const { all } = compileLimits(
    effectiveDevlove({ domains: { [main]: { limits: { requests } } } }, main, null),
  );
  return all;
}

/** A request whose address may be read so often. */
function requestOf(method: string, readsMax = Infinity): LimitedRequest {
  const host = stateOf(1, {}).domains[0]?.hosts[0];
  if (host === undefined) throw new Error("no host");
  let reads = 0;
  const client: LimitedRequest["client"] = {
    isProxied: false,
    forwardedFor: "192.0.2.1",
    scheme: "https",
    get text() {
      if (++reads > readsMax) throw new Error("the address is read");
      return "192.0.2.1";
    },
  };
  const verdict = { kind: "allow", reason: "not-a-bot", bot: null } as const;
  const judged = { served: { kind: "served", domain: main, host, compiled: undefined }, verdict } as const; // prettier-ignore
  return { method, client, fields: [], startedWallMs: 0, judged };
}

function openRates() {
  const limited: string[] = [];
  const rates = new RequestRates({
    table: new RateTable(rateMemory("a test")),
    tally: { limited: (_domain, kind) => limited.push(kind), uncounted: () => {} },
    decisions: { note: () => "an id" },
    clock: { steadyMs: () => 0 },
  });
  return { rates, limited };
}

test("the address is read once, and not at all where no rule takes the method", () => {
  const { rates } = openRates();
  expect(rates.ask([], requestOf("GET", 0)).kind).toBe("within");
  const login = limitsOf([{ path: "/login", methods: ["POST"], rate: 1, per_s: 60 }]);
  for (let time = 0; time < 3; time++)
    expect(rates.ask(login, requestOf("GET", 0)).kind).toBe("within");
  const two = limitsOf([
    { path: "/**", rate: 3, per_s: 60 },
    { path: "/login", rate: 1, per_s: 60 },
  ]);
  expect([rates.ask(two, requestOf("GET", 1)).kind, rates.ask(two, requestOf("GET", 2)).kind]).toEqual(["within", "over"]); // prettier-ignore
});

test("a rule that refuses is told, not the monitored one before it", () => {
  const { rates, limited } = openRates();
  const rules = limitsOf([
    { path: "/**", rate: 1, per_s: 60, mode: "monitor" },
    { path: "/login", rate: 2, per_s: 60 },
  ]);
  const told = [1, 2, 3].map(() => rates.ask(rules, requestOf("GET")));
  expect(told.map(({ kind, verdict }) => [kind, verdict?.kind, verdict?.rule])).toEqual([
    ["within", undefined, undefined],
    ["within", "would-limit", "/**: 1 in 60 s, 1 at once"],
    ["over", "limit", "/login: 2 in 60 s, 2 at once"],
  ]);
  expect(limited).toEqual(["would-limit", "limit"]);
});
