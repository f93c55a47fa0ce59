// docs/bots.md is true: its curl examples, one after another by one customer, answer what stands below them; its settings are settings.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agentFields } from "../../../src/agent/settings/fields.ts";
import { agentBotsCommand } from "../../../src/cli/agent-bots.ts";
import { centralBotsCommand } from "../../../src/cli/central-bots.ts";
import { whyCommand } from "../../../src/cli/agent-why.ts";
import { member, openApi, type Api } from "./api-harness.ts";
import { receipt } from "./receipts.ts";

const document = readFileSync(join(import.meta.dirname, "../../../docs/bots.md"), "utf8");
const blocks = [...document.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(
  ([, language = "", text = ""]) => ({ language, text }),
);

/** The options that the examples use, as curl reads them. */
function parseCurl(text: string): { method: string; path: string; body: unknown } | undefined {
  const match = /^curl(?: -X (PUT))? -H "\$AUTH"(?: --json '([^']*)')? "\$API(\/[^"]*)"\n$/.exec(
    text,
  );
  if (match === null) return undefined;
  const [, put, json, path = ""] = match;
  const body: unknown = json === undefined ? undefined : JSON.parse(json);
  return { method: put ?? (body === undefined ? "GET" : "POST"), path, body };
}

const examples = blocks.flatMap(({ language, text }, at) => {
  if (language !== "sh" || !text.startsWith("curl")) return [];
  const answer = blocks[at + 1];
  const found = parseCurl(text);
  if (found === undefined || answer?.language !== "json") throw new Error(`cannot read: ${text}`);
  return [{ ...found, answer: JSON.parse(answer.text) as unknown }];
});

let api: Api;
let token: string;
const instanceId = "1f0e3dad99908345";
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("reader");
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  const siteId = Number(member(site.body, "id"));
  const body = { name: "shop.example.com", deployment_site_id: siteId };
  await api.call("POST", "/domain/", { token, body });
  // Its agent has told of all that the journal will have.
  const detail = { snapshot: true };
  await receipt(api, { siteId, seq: 1_000, phase: "applied", detail, instanceId, tookMs: 9 });
});
afterAll(async () => api[Symbol.asyncDispose]());

describe("the examples of docs/bots.md", () => {
  test("are there", () => {
    expect(examples.length).toBeGreaterThanOrEqual(10);
  });

  test.each(examples)("$path", async ({ method, path, body, answer }) => {
    const reply = await api.call(method, path, { token, ...(body !== undefined && { body }) });
    expect(reply).toMatchObject({ status: 200 });
    expect(reply.body).toEqual(answer);
  });
});

test("the settings for trusted proxies are those of the agent", () => {
  const yaml = blocks.filter(({ language }) => language === "yaml").map(({ text }) => text);
  expect(yaml).toHaveLength(1);
  const { accelerator } = parse(yaml[0] ?? "") as { accelerator: Record<string, unknown> };
  const fields = new Map(Object.entries(agentFields));
  for (const [name, value] of Object.entries(accelerator))
    expect(fields.get(`accelerator.${name}`)?.parse(value), name).toMatchObject({ ok: true });
  expect(Object.keys(accelerator)).toHaveLength(3);
});

test("the commands for operators are commands", () => {
  const lines = blocks
    .filter(({ language }) => language === "text")
    .flatMap(({ text }) => text.trim().split("\n"))
    .map((line) => line.replace(/ +#.*$/, ""));
  const usages = [whyCommand, agentBotsCommand, centralBotsCommand].flatMap(({ usage }) =>
    usage.split("\n"),
  );
  for (const line of lines) {
    const [name, ...words] = line.split(" ");
    const verb = words.slice(0, words[0] === "bots" ? 2 : 1).join(" ");
    expect(
      usages.some((usage) => usage.startsWith(`${name} ${verb}`)),
      line,
    ).toBe(true);
    for (const option of words.filter((word) => word.startsWith("--")))
      expect(usages.join("\n"), line).toContain(`  ${option} `);
  }
  expect(lines).toHaveLength(6);
});

test("each field, header, metric and limit that it names is in the code that it speaks of", () => {
  const named = (path: string, ...texts: readonly string[]): void => {
    const code = readFileSync(join(import.meta.dirname, "../../../src", path), "utf8");
    for (const text of texts) {
      expect(document).toContain(text);
      expect(code, path).toContain(text);
    }
  };
  named("agent/accelerator/plain-answer.ts", "X-Accel-Decision");
  named(
    "agent/accelerator/records/request-tally.ts",
    "accel_agent_blocked_total",
    "accel_agent_would_block_total",
    "accel_agent_allowed_total",
  );
  named(
    "wire/customer/bot.ts",
    "also_in",
    "is_custom_ip_range",
    "attach_to_bot",
    "remove_from_domain",
  );
});
