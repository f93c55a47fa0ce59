// What commands say where no agent runs: on a host that has not joined, of a command that is wrong, and as help.

import { expect, test } from "vitest";
import { agentCheckCommand, netcheckCommand } from "../../src/agent/main.ts";
import { missingSettings } from "../../src/base/settings-file.ts";
import { logsCommand } from "../../src/cli/agent-logs.ts";
import { agentStatusCommand } from "../../src/cli/agent-status.ts";
import { centralStatusCommand } from "../../src/cli/central-status.ts";
import { tempDir } from "../support/temp-dir.ts";
import { run } from "./command-rig.ts";

test("what is wrong with `logs tail` is bad usage without an agent, too", async () => {
  using nowhere = tempDir();
  for (const args of [
    ["-n", "x"],
    ["--status", "6xx"],
  ])
    await expect(
      run(logsCommand, ["tail", ...args, "--state-dir", nowhere.path]),
    ).rejects.toMatchObject({ code: "USAGE" });
});

test("on a host that has not joined, the next step is named", async () => {
  expect(missingSettings("/etc/accel-agent/agent.yaml").hint).toContain(
    "`accel-agent join --central URL`",
  );
  expect(missingSettings("/etc/accel-central/central.yaml")).toEqual({});
  const never = ["--instance", "never-joined-here"];
  const hint = expect.stringContaining(
    "`accel-agent join --central URL --instance never-joined-here`",
  );
  await expect(run(agentStatusCommand, never)).rejects.toMatchObject({ hint });
  await expect(run(netcheckCommand, never)).rejects.toMatchObject({ hint });
  await expect(run(agentCheckCommand, never)).rejects.toMatchObject({ hint });
});

test("help names the program's own settings file", () => {
  expect(agentStatusCommand.usage).toContain("(default /etc/accel-agent/agent.yaml)");
  expect(centralStatusCommand.usage).toContain("(default /etc/accel-central/central.yaml)");
});
