// What is advised of the plain agent, as it is told of an instance.

import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { adviceFor, agentProgram, placeOf } from "../../src/base/instance.ts";

const shop = placeOf(agentProgram, "shop");

test.each([
  ["`journalctl -u accel-agent` says it", "`journalctl -u accel-agent@shop` says it"],
  ["systemctl edit accel-agent, then", "systemctl edit accel-agent@shop, then"],
  ["`accel-agent diagnostics` collects", "`accel-agent diagnostics --instance shop` collects"],
  [
    "`accel-agent join --central URL --replace` and `accel-agent logs backlog`",
    "`accel-agent join --central URL --replace --instance shop` and `accel-agent logs backlog --instance shop`",
  ],
  [
    "the unit's proxy (/etc/accel-agent/environment)",
    "the unit's proxy (/etc/accel-agent/shop/environment)",
  ],
])("%s: %s", (plain, told) => {
  expect(adviceFor(shop, plain)).toBe(told);
  expect(adviceFor(placeOf(agentProgram), plain)).toBe(plain);
});

test.each([
  "`accel-agent status --instance shop`, `accel-agent check --config /x/agent.yaml`",
  "journalctl -u accel-agent@shop, and journalctl -u accel-agent-rollout",
  "`accel-central site enrol` makes a code",
])("%s stays as it is", (advice) => {
  expect(adviceFor(shop, advice)).toBe(advice);
});

test("each warning's hint is told for the unit that warns", () => {
  const health = new Health(
    () => new Date(0),
    (hint) => adviceFor(shop, hint),
  );
  health.raise("disk_low", "warning", "", "`accel-agent doctor` adds up what the settings allow");
  expect(health.list()[0]?.hint).toMatch(/^`accel-agent doctor --instance shop` adds/);
});
