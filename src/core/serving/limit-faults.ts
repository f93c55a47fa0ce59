// What is wrong with rules of `limits.requests` in ways that no schema can express. See devlove-semantics.ts.

import { burstOf, ratePerSecondMax } from "../limits/request-rate.ts";
import { ruleName, type NamedRule } from "../limits/site-limits.ts";
import type { Fault } from "./devlove-semantics.ts";

/** The longest time until an address that has used up everything may do so again. */
const refillMaxS = 86_400;

type Rule = Readonly<Record<string, unknown>>;

/** Finds rates that are counted no more exactly, and bursts that take longer than a day to come back. */
export function requestLimitFaults(rule: Rule): readonly Fault[] {
  const filled = filledOf(rule);
  if (filled === undefined) return [];
  const { rate, per_s: perS } = filled;
  if (rate / perS > ratePerSecondMax) {
    const most = ratePerSecondMax * perS;
    return [
      { path: ["rate"], message: `\`rate\` is ${most} at most in ${perS} s: a thousand a second` },
    ];
  }
  if ((burstOf(filled) * perS) / rate <= refillMaxS) return [];
  const most = Math.floor((refillMaxS * rate) / perS);
  const message = `\`burst\` is ${most} at most at this rate: what is used up has to come back within a day`;
  return [{ path: [Object.hasOwn(rule, "burst") ? "burst" : "rate"], message }];
}

/** Finds rules that would count as one: they say the same but for their mode. */
export function requestLimitsFaults(rules: readonly unknown[]): readonly Fault[] {
  const seen = new Map<string, number>();
  return rules.flatMap((rule, at) => {
    const filled = typeof rule === "object" && rule !== null ? filledOf({ ...rule }) : undefined;
    if (filled === undefined) return [];
    const name = ruleName(filled);
    const before = seen.get(name);
    if (before === undefined) seen.set(name, at);
    return before === undefined
      ? []
      : [{ path: [at], message: `rule ${before} says the same: each request would count twice` }];
  });
}

/** Fills in what is in force where the rule says nothing; undefined if it is no rate. What else is malformed is told by its shape. */
function filledOf({
  path,
  methods = [],
  rate: said,
  per_s: saidPerS = 1,
  burst,
}: Rule): NamedRule | undefined {
  const [rate, perS] = [numberOf(said), numberOf(saidPerS)];
  if (rate === undefined || perS === undefined) return undefined;
  return {
    path: typeof path === "string" ? path : "",
    methods: Array.isArray(methods) ? methods.filter((method) => typeof method === "string") : [],
    rate,
    per_s: perS,
    burst: numberOf(burst) ?? null,
  };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}
