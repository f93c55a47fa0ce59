// The doctor's line about rollouts: whether central may install releases on this host, and what is in the way.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Finding, Host, Installer } from "../../../src/agent/doctor/finding.ts";
import { checkRollouts } from "../../../src/agent/doctor/rollouts.ts";
import { agentFields } from "../../../src/agent/settings/fields.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { loadSettings } from "../../../src/base/settings-file.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { answering } from "./agent-seen.ts";

type Scene = {
  readonly takes?: ReturnType<Installer["takes"]>;
  readonly outcome?: ReturnType<Installer["outcome"]>;
  readonly unit?: string;
  readonly files?: Readonly<Record<string, string>>;
};

const repository = { "/etc/apt/sources.list.d/accel-agent.list": "deb …" };
const entry = (name: string, status: string): string =>
  `Package: ${name}\nPriority: optional\nDescription: words\n and more\nStatus: ${status}\nVersion: 1\n\n`;

function withCentral(status: string): Readonly<Record<string, string>> {
  const agent = entry("accel-agent", "install ok installed");
  const packages = `${agent}${entry("accel-central", status)}${agent}`;
  return { ...repository, "/var/lib/dpkg/status": packages };
}

async function found({
  takes = "yes",
  outcome,
  unit = "loaded",
  files = repository,
}: Scene): Promise<Finding> {
  using dir = tempDir();
  const config = join(dir.path, "agent.yaml");
  writeFileSync(config, "central_url: https://central.example\nname16: '0123456789abcdef'\n");
  const host: Host = {
    config,
    place: placeOf(agentProgram),
    uid: 0,
    read: (path) => files[path],
    unit: async () => new Map([["LoadState", unit]]),
    others: () => [],
    agent: async () => answering,
    encoder: async () => ({ kind: "opened", versions: {} }),
    installer: (stateDir) =>
      stateDir === "/var/lib/accel-agent"
        ? { takes: () => takes, outcome: () => outcome }
        : undefined,
  };
  return checkRollouts(loadSettings(agentFields, config), host);
}

const failed = { id: "1", state: "failed", reason: "no room", writtenMs: 0 } as const;

test.each<[string, Scene, Finding["state"], RegExp]>([
  [
    "not from the packages",
    { unit: "not-found" },
    "skipped",
    /an agent that runs by its unit, and there is no unit accel-agent on this host$/,
  ],
  ["masked", { unit: "masked" }, "skipped", /by its unit, and accel-agent is masked$/],
  ["not allowed", { takes: "off" }, "skipped", /enable --now accel-agent-rollout\.path/],
  ["allowed", {}, "ok", /may install releases$/],
  ["held", { takes: "held" }, "ok", /are held/],
  ["without a repository", { files: {} }, "warning", /does not name their repository/],
  [
    "central was here once",
    { files: withCentral("deinstall ok config-files") },
    "ok",
    /may install/,
  ],
  ["beside central", { files: withCentral("hold ok installed") }, "warning", /has accel-central/],
  ["the last one failed", { outcome: failed }, "warning", /the last one was failed: no room/],
  ["the last one is done", { outcome: { ...failed, state: "done" } }, "ok", /may install/],
])("%s", async (_, scene, state, words) => {
  const finding = await found(scene);
  expect(finding).toMatchObject({
    check: "rollouts",
    state,
    text: expect.stringMatching(words),
  });
  if (state === "warning") expect(finding.hint).toMatch(/\S/);
});
