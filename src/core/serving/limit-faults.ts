// What is wrong with rules of `limits.requests` in ways that no schema can express. See devlove-semantics.ts.

import { burstOf, ratePerSecondMax } from "../limits/request-rate.ts";
import type { Fault } from "./devlove-semantics.ts";

/** The longest time until an address that has used up everything may do so again. */
const refillMaxS = 86_400;

type Rule = Readonly<Record<string, unknown>>;

/** Finds rates that are counted no more exactly, and bursts that take longer than a day to come back. */
export function requestLimitFaults(rule: Rule): readonly Fault[] {
  const rate = numberOf(rule["rate"]);
  const perS = numberOf(rule["per_s"] ?? 1);
  if (rate === undefined || perS === undefined) return [];
  if (rate / perS > ratePerSecondMax) {
    const most = ratePerSecondMax * perS;
    return [
      { path: ["rate"], message: `\`rate\` is ${most} at most in ${perS} s: a thousand a second` },
    ];
  }
  const burst = burstOf({ rate, per_s: perS, burst: numberOf(rule["burst"]) ?? null });
  if ((burst * perS) / rate <= refillMaxS) return [];
  const most = Math.floor((refillMaxS * rate) / perS);
  const message = `\`burst\` is ${most} at most at this rate: what is used up has to come back within a day`;
  return [{ path: [Object.hasOwn(rule, "burst") ? "burst" : "rate"], message }];
}

/** Finds rules that would count as one: they say the same but for their mode. */
export function requestLimitsFaults(rules: readonly unknown[]): readonly Fault[] {
  const seen = new Map<string, number>();
  return rules.flatMap((rule, at) => {
    if (typeof rule !== "object" || rule === null) return [];
    const { path, methods = [], rate, per_s: perS = 1, burst = rate }: Rule = { ...rule };
    const listed = Array.isArray(methods) ? methods.map(String).toSorted() : methods;
    const name = JSON.stringify([path, listed, rate, perS, burst]);
    const before = seen.get(name);
    if (before === undefined) seen.set(name, at);
    return before === undefined
      ? []
      : [{ path: [at], message: `rule ${before} says the same: each request would count twice` }];
  });
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}
