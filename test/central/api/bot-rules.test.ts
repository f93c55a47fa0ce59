// Every rule and limit of marks, removals, checks, lists and the access policy, a row each, by requests to the API.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRateLimit } from "../../../src/central/agents/rate-limit.ts";
import { centralFields } from "../../../src/central/settings/fields.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { main, sub, type BotRule, type Step } from "./bot-requests.ts";
import { checkRules } from "./check-rules.ts";
import { markRules } from "./mark-rules.ts";
import { policyClassRules } from "./policy-class-rules.ts";
import { policyRules } from "./policy-rules.ts";
import { removalRules } from "./removal-rules.ts";

const rules = [...markRules, ...removalRules, ...checkRules, ...policyRules, ...policyClassRules];

let api: Api;
let no = 0;
beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1_000, trialsTotal: 1_000 });
});
afterAll(async () => api[Symbol.asyncDispose]());

type Customer = { readonly token: string; readonly siteId: number };

async function openCustomer(at: Api): Promise<Customer> {
  const token = await at.trial(`rules${++no}`);
  const site = await at.call("POST", "/deployment-site/", { token, body: {} });
  const siteId = Number(member(site.body, "id"));
  const body = { name: main, deployment_site_id: siteId };
  await at.call("POST", "/domain/", { token, body });
  await at.call("PUT", `/domain/${main}/`, { token, body: { sub_domain: { name: sub } } });
  return { token, siteId };
}

async function take(
  at: Api,
  customers: readonly Customer[],
  step: Step,
  isExact: boolean,
): Promise<void> {
  if ("waitMs" in step) {
    at.clock = new Date(at.clock.getTime() + step.waitMs);
    return;
  }
  const [{ method, path, body, asOther = false }, status, answer] = step;
  const token = customers[asOther ? 1 : 0]?.token ?? "";
  const reply = await at.call(method, path, { token, ...(body !== undefined && { body }) });
  const what = `${method} ${path} ${JSON.stringify(body)?.slice(0, 200)}`;
  const said = JSON.stringify(reply.body)?.slice(0, 500);
  expect(reply.status, `${what} answers ${said}`).toBe(status);
  if (answer !== undefined && isExact) expect(reply.body, what).toEqual(answer);
  else if (answer !== undefined) expect(reply.body, what).toMatchObject(answer);
  if (status >= 400) expect(reply.headers["content-type"], what).toBe("application/problem+json");
  if (status === 429) expect(Number(reply.headers["retry-after"]), what).toBeGreaterThan(0);
}

async function keep({ steps, told, isExact = false }: BotRule, at: Api): Promise<void> {
  const customers = [await openCustomer(at), await openCustomer(at)];
  const siteId = customers[0]?.siteId ?? 0;
  const before = (await at.journal(siteId)).length;
  for (const step of steps) await take(at, customers, step, isExact);
  if (told === undefined) return;
  const entries = await at.journal(siteId, before);
  const bodies = entries.map(({ body }) => body);
  if (isExact) expect(bodies).toEqual(told);
  // What is told of a mark has nothing else between; of a policy the last ones count.
  expect(bodies.slice(told.length === 0 ? 0 : -told.length)).toMatchObject([...told]);
  if (entries.every(({ kind }) => kind === "bots.changed"))
    expect(bodies).toHaveLength(told.length);
}

describe("each rule of bots and policy", () => {
  afterAll(() => {
    const lines = rules.map(({ rule }, at) => `  ${String(at + 1).padStart(2)}  ${rule}`);
    process.stdout.write(`bot and policy rules, a row each:\n${lines.join("\n")}\n`);
  });

  test.each(rules)("$rule", async (rule) => {
    if (rule.limits === undefined) {
      await keep(rule, api);
      return;
    }
    await using limited = await openApi(rule.limits);
    await keep(rule, limited);
  });
});

test("rate: by default 20,000 marks at once and 200 a second, sustained", () => {
  const burst = centralFields["limits.marks_burst"].fallback;
  const perSecond = centralFields["limits.marks_per_second"].fallback;
  expect([burst, perSecond]).toEqual([20_000, 200]);
  let nowMs = 0;
  const limit = createRateLimit({ burst, perSecond, keysMax: 10 }, () => nowMs);
  const taken = (asked: number): number =>
    Array.from({ length: asked }, () => limit.take("customer")).filter((waitMs) => waitMs === 0)
      .length;
  expect(taken(20_001)).toBe(20_000);
  for (let second = 1; second <= 10; second++) {
    nowMs = second * 1_000;
    expect(taken(300)).toBe(200);
  }
});
