// What the doctor says of the agent itself.

import { expect, test } from "vitest";
import { agentSeen, checkAgent } from "../../../src/agent/doctor/agent.ts";
import type { AgentSeen } from "../../../src/agent/doctor/finding.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { answering } from "./agent-seen.ts";

test.each<[string, AgentSeen, string, RegExp]>([
  ["that does not run", { kind: "absent" }, "skipped", /^it does not run$/],
  ["that serves", answering, "ok", /^it serves, and warns of nothing$/],
  [
    "that warns",
    { ...answering, warnsOf: ["disk_low", "origin_failing"] },
    "warning",
    /^it serves, and warns of disk_low, origin_failing$/,
  ],
  ["that starts", { ...answering, isReady: false }, "warning", /does not serve yet/],
  ["that hangs", { kind: "hangs", reason: "it hangs" }, "failed", /^it hangs$/],
  ["of another user", { kind: "denied" }, "skipped", /: give the command as root$/],
])("an agent %s", async (_what, seen, state, words) => {
  const found = await checkAgent({ agent: async () => seen, place: placeOf(agentProgram) });
  expect(found).toMatchObject({ check: "agent", state, text: expect.stringMatching(words) });
  expect(found.hint === undefined).toBe(state === "ok" || state === "skipped");
});

test("what the agent says of itself is read as far as it is there", () => {
  expect(agentSeen(null)).toEqual({ ...answering, isReady: false, link: undefined });
  const warning = (code: string, severity: string): object => ({ code, severity });
  const warnings = [
    warning("unclean_end", "info"),
    warning("disk_low", "warning"),
    warning("origin_failing", "error"),
    warning("disk_low", "error"),
    null,
  ];
  const link = { state: "disconnected", last_error: { message: "no route" } };
  expect(
    agentSeen({ ready: true, warnings, parts: { link, images: { encoder: "absent" } } }),
  ).toEqual({
    kind: "answers",
    isReady: true,
    warnsOf: ["disk_low", "origin_failing"],
    link: { state: "disconnected", error: "no route" },
    isEncoderMissed: true,
  });
});
