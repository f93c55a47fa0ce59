// What commands say where no agent runs: on a host that has not joined, of a command that is wrong, and as help.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { agentCheckCommand } from "../../src/agent/checking.ts";
import { doctorCommand, netcheckCommand } from "../../src/agent/examining.ts";
import { readArgs } from "../../src/base/command.ts";
import { agentProgram, placeOf, placeOptions } from "../../src/base/instance.ts";
import { howToJoin, loadSettings } from "../../src/base/settings-file.ts";
import { logsCommand } from "../../src/cli/agent-logs.ts";
import { agentStatusCommand } from "../../src/cli/agent-status.ts";
import { auditCommand } from "../../src/cli/central-audit.ts";
import { customerCommand } from "../../src/cli/central-customer.ts";
import { centralStatusCommand } from "../../src/cli/central-status.ts";
import { agentOptions, controlOptions, refuseWithoutSecret } from "../../src/cli/control.ts";
import { tempDir } from "../support/temp-dir.ts";
import { contextOf, run } from "./command-rig.ts";

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

test("the name of an agent of this host is no word for a command: the option that was meant is named, or those that there are", async () => {
  using home = tempDir();
  for (const name of ["lab", "shop-of-books"]) {
    mkdirSync(join(home.path, name));
    writeFileSync(join(home.path, name, "agent.yaml"), "");
  }
  writeFileSync(join(home.path, "agent.yaml"), "");
  mkdirSync(join(home.path, "bare"));
  for (const options of [agentOptions, { ...placeOptions, json: { type: "boolean" } } as const]) {
    const read =
      (word: string, at = home.path) =>
      (): unknown =>
        readArgs([word], options, 0, {}, at);
    for (const [word, meant] of [
      ["lab", "lab"],
      ["shop-of-bocks", "shop-of-books"],
    ] as const)
      expect(read(word)).toThrow(
        expect.objectContaining({
          code: "USAGE",
          message: expect.stringMatching(
            new RegExp(`'${word}'.* arguments; did you mean --instance ${meant}\\?$`),
          ),
        }),
      );
    for (const word of ["nobody", "bare", "../other"])
      expect(read(word)).toThrow(
        / arguments; this host has accel-agent \(without --instance\), accel-agent@lab \(--instance lab\), accel-agent@shop-of-books \(--instance shop-of-books\)$/,
      );
    // No agent has a name there.
    for (const at of [join(home.path, "lab"), "/nowhere"])
      expect(read("nobody", at)).toThrow(/ arguments$/);
  }
  // Central has no instances.
  expect(() => readArgs(["lab"], controlOptions, 0, {}, home.path)).toThrow(/'lab'.* arguments$/);
  for (const command of [agentStatusCommand, doctorCommand, netcheckCommand, agentCheckCommand])
    await expect(run(command, ["nobody-here"])).rejects.toThrow(
      /^Unexpected argument 'nobody-here'.* arguments/,
    );
});

test("on a host that has not joined, the next step is named", async () => {
  const generic = /^Correct the settings file/;
  expect(() => loadSettings({}, "/etc/accel-central/nowhere.yaml")).toThrow(
    expect.objectContaining({ hint: expect.stringMatching(generic) }),
  );
  const never = ["--instance", "never-joined-here"];
  const hint = expect.stringContaining(
    "`accel-agent join --central URL --instance never-joined-here`",
  );
  await expect(run(agentStatusCommand, never)).rejects.toMatchObject({ hint });
  await expect(run(netcheckCommand, never)).rejects.toMatchObject({ hint });
  await expect(run(agentCheckCommand, never)).rejects.toMatchObject({ hint });
});

test("on a host that has settings of its own and has not joined, the next step is named", async () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.yaml");
  const told = ["--config", path];
  const text = `state_dir: ${dir.path}\naccelerator:\n  listen: 127.0.0.1:8080\n`;
  writeFileSync(path, text);
  const joining = `This host has not joined a deployment site yet: \`accel-agent join --central URL --config ${path}\` does that, and writes central_url and name16.`;
  for (const command of [agentStatusCommand, netcheckCommand, agentCheckCommand])
    await expect(run(command, told)).rejects.toMatchObject({ hint: joining });
  await expect(run(agentStatusCommand, told)).rejects.toThrow(
    `no agent runs here, and ${path} names no central`,
  );
  const said: string[] = [];
  const context = contextOf([...told, "--json"], new AbortController().signal);
  const examined = doctorCommand.run({ ...context, out: (text) => void said.push(text) });
  await expect(examined).rejects.toMatchObject({ code: "HOST_NOT_FIT" });
  expect(JSON.parse(said.join(""))[0]).toMatchObject({ check: "settings", hint: joining });

  writeFileSync(path, `${text}spool:\n  max: much\n`);
  const corrected = { hint: `${joining} Correct the other lines before.` };
  await expect(run(agentCheckCommand, told)).rejects.toMatchObject(corrected);
  await expect(run(agentStatusCommand, told)).rejects.toMatchObject({ hint: joining });
  writeFileSync(path, `${text}central_url: https://central.example.com\n`);
  await expect(run(agentStatusCommand, told)).rejects.toThrow(/^no answer on /);
  await expect(run(agentCheckCommand, told)).rejects.toMatchObject({
    hint: expect.stringMatching(/^Correct the settings file/),
  });
  expect(howToJoin(dir.path)).toBeUndefined();
});

test("where the secret is gone and no agent is to be seen, that is what is said", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.yaml");
  const [shown, source] = [join(dir.path, "shown"), join(dir.path, "secret16")];
  const place = { ...placeOf(agentProgram), secret: { shown, source } };
  const socket = join(dir.path, "control.sock");
  const refuse = (): void => refuseWithoutSecret(socket, path, place);
  writeFileSync(path, "name16: af82fa5cca7e4a17\n");
  expect(refuse).toThrow(
    expect.objectContaining({
      code: "CONTROL_UNREACHABLE",
      message: `no agent runs here, and ${source} is not there; the agent cannot start`,
      hint: expect.stringMatching(/^As root: install /),
    }),
  );
  // Of another file than the unit's nothing is known here.
  writeFileSync(path, "secret16_file: /elsewhere/secret16\n");
  expect(refuse).not.toThrow();
  writeFileSync(path, "name16: af82fa5cca7e4a17\n");
  writeFileSync(socket, "");
  expect(refuse).not.toThrow();
  rmSync(socket);
  writeFileSync(source, "");
  expect(refuse).not.toThrow();
});

test("each command of a central that does not run says so, with what systemd says of its unit", async () => {
  using dir = tempDir();
  const said = "LoadState=loaded\\nActiveState=inactive\\nResult=success\\n";
  const systemctl = `#!/bin/sh\nprintf '${said}'\n`;
  writeFileSync(join(dir.path, "systemctl"), systemctl, { mode: 0o755 });
  vi.stubEnv("PATH", `${dir.path}:${process.env["PATH"]}`);
  try {
    for (const [command, args] of [
      [centralStatusCommand, []],
      [auditCommand, []],
      [customerCommand, ["list"]],
      [customerCommand, ["show", "1"]],
    ] as const)
      await expect(run(command, args)).rejects.toThrow(
        "central does not run: accel-central was not started since this host booted",
      );
  } finally {
    vi.unstubAllEnvs();
  }
});

test("help names the program's own settings file", () => {
  expect(agentStatusCommand.usage).toContain("(default /etc/accel-agent/agent.yaml)");
  expect(centralStatusCommand.usage).toContain("(default /etc/accel-central/central.yaml)");
});
