// What the doctor says of a unit whose file systemd has not read, for it is masked or gone: nothing of what it would allow, and that nobody is served.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import type { AgentSeen, Finding, Host } from "../../../src/agent/doctor/finding.ts";
import { checkDescriptors, checkUnit } from "../../../src/agent/doctor/unit.ts";
import { hostOf } from "../../../src/agent/examining.ts";
import { agentFields } from "../../../src/agent/settings/fields.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { loadSettings } from "../../../src/base/settings-file.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { answering } from "./agent-seen.ts";

/** As systemd shows a unit that it has not read: its own defaults. */
const unreadUnit = (state: string, active = "inactive"): ReadonlyMap<string, string> =>
  new Map([
    ["LoadState", state],
    ["ActiveState", active],
    ["Result", "success"],
    ["LimitNOFILE", "20000"],
  ]);

test.each<[state: string, active: string, agent: AgentSeen["kind"], Omit<Finding, "check">]>([
  [
    "masked",
    "inactive",
    "absent",
    {
      state: "failed",
      text: "accel-agent@b is masked, and no agent runs: nobody is served",
      hint: "systemctl unmask accel-agent@b, then systemctl start accel-agent@b.",
    },
  ],
  [
    "not-found",
    "inactive",
    "absent",
    {
      state: "failed",
      text: "there is no unit accel-agent@b on this host, and no agent runs: nobody is served",
      hint: "Install the package accel-agent again.",
    },
  ],
  [
    "masked",
    "active",
    "answers",
    {
      state: "failed",
      text: "accel-agent@b is masked: it runs, and systemd, which does not hear it any more, ends it within a minute and starts none",
      hint: "systemctl unmask accel-agent@b, then systemctl start accel-agent@b.",
    },
  ],
  [
    "not-found",
    "inactive",
    "answers",
    {
      state: "skipped",
      text: "there is no unit accel-agent@b on this host: the agent runs without it",
    },
  ],
  [
    "masked",
    "inactive",
    "denied",
    {
      state: "failed",
      text: "accel-agent@b is masked, and does not run: nobody is served, unless an agent runs without it",
      hint: "systemctl unmask accel-agent@b, then systemctl start accel-agent@b.",
    },
  ],
  [
    "not-found",
    "inactive",
    "denied",
    {
      state: "skipped",
      text: "there is no unit accel-agent@b on this host; whether an agent runs without it: give the command as root",
    },
  ],
])("a unit that is %s and %s, where the agent %s", async (state, active, kind, finding) => {
  const unit = unreadUnit(state, active);
  const place = placeOf(agentProgram, "b");
  const agent = async (): Promise<AgentSeen> => ({ ...answering, kind, reason: "" });
  const host: Host = {
    ...hostOf(place.config, new AbortController().signal),
    agent,
    unit: async () => unit,
  };
  using dir = tempDir();
  const config = join(dir.path, "agent.yaml");
  writeFileSync(config, "central_url: https://central.example\nname16: '0123456789abcdef'\n");
  const settings = loadSettings(agentFields, config);
  expect(await checkUnit(settings, host)).toEqual([{ check: "unit", ...finding }]);
  // Settings that no unit has need none.
  expect(await checkUnit(settings, { ...host, config })).toMatchObject([{ state: "skipped" }]);
  expect(await checkDescriptors(host)).toMatchObject({
    state: "skipped",
    text: expect.stringMatching(/^what the unit allows cannot be read: /),
  });
});

test("a unit without a file is told of, though systemd cannot print it", async () => {
  using dir = tempDir();
  const systemctl =
    '#!/bin/sh\n[ "$1" = show ] || exit 1\necho LoadState=not-found\necho ActiveState=inactive\n';
  writeFileSync(join(dir.path, "systemctl"), systemctl, { mode: 0o755 });
  const { config } = placeOf(agentProgram, "b");
  vi.stubEnv("PATH", `${dir.path}:${process.env["PATH"]}`);
  try {
    const unit = await hostOf(config, new AbortController().signal).unit();
    expect(unit?.get("LoadState")).toBe("not-found");
  } finally {
    vi.unstubAllEnvs();
  }
});
