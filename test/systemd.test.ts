// The units as systemd reads them: nothing to complain of, little exposed, in step with the settings' defaults.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { instanceUnit } from "../scripts/package/instance-unit.ts";
import { agentFields } from "../src/agent/settings/fields.ts";
import { agentProgram, placeOf } from "../src/base/instance.ts";
import { tempDir } from "./support/temp-dir.ts";

const isMissing = spawnSync("systemd-analyze", ["--version"]).status !== 0;
const hint = "needs systemd-analyze: apt-get install systemd";
const programs = ["agent", "central"] as const;

function unitText(program: string): string {
  return readFileSync(new URL(`../systemd/accel-${program}.service`, import.meta.url), "utf8");
}

/** All values of a key, in order. */
function valuesOf(unit: string, key: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value]) => value ?? "");
}

/** `systemd-analyze` on a copy that starts this Node, since the program itself is not installed here. */
function analyze(
  unit: string,
  ...args: readonly string[]
): { status: number | null; said: string } {
  using dir = tempDir();
  const path = join(dir.path, "accel.service");
  writeFileSync(path, unit.replaceAll(/=\/usr\/bin\/accel-\S+/g, `=${process.execPath}`));
  const { status, stdout, stderr } = spawnSync("systemd-analyze", [...args, path], {
    encoding: "utf8",
  });
  return { status, said: stdout + stderr };
}

const verify = (unit: string): { status: number | null; said: string } =>
  analyze(unit, "verify", "--man=no", "--recursive-errors=no");

test.skipIf(isMissing).each(programs)(`%s: verified clean (${hint})`, (program) => {
  expect(verify(unitText(program))).toEqual({ status: 0, said: "" });
});

test.skipIf(isMissing)(`a misspelt key would be found (${hint})`, () => {
  const { said } = verify(unitText("agent").replace("ProtectSystem=", "ProtectSytem="));
  expect(said).toContain("ProtectSytem");
});

test.skipIf(isMissing).each(programs)(`%s: exposure under 2.0 of 10 (${hint})`, (program) => {
  const { said } = analyze(unitText(program), "security", "--offline=true", "--no-pager");
  const exposure = /Overall exposure level for \S+: (\d+\.\d+)/.exec(said)?.[1];
  expect(Number(exposure), said).toBeLessThan(2);
});

test.each(programs)("%s: what systemd and the program promise each other", (program) => {
  const unit = unitText(program);
  const command = program === "agent" ? "run" : "serve";
  const one = (key: string): string => valuesOf(unit, key).join(" ");
  expect(one("ExecStart")).toBe(
    `/usr/bin/accel-${program} ${command} --config /etc/accel-${program}/${program}.yaml`,
  );
  expect(one("Type")).toBe("notify");
  expect(one("NotifyAccess")).toBe("main");
  expect(one("WatchdogSec")).toBe("60");
  expect(one("ExecReload")).toMatch(/'kill -HUP \$MAINPID'$/);
  expect(one("Restart")).toBe("always");
  expect(one("StartLimitIntervalSec")).toBe("0");
  expect(one("UMask")).toBe("0077");
  expect(`/var/lib/${one("StateDirectory")}`).toBe(`/var/lib/accel-${program}`);
  expect(one("MemoryDenyWriteExecute")).toBe(""); // V8 ends at its start with it.
  expect(one("SystemCallErrorNumber")).toBe("EPERM");
});

test("agent: port 80, secret and state lie where the settings look for them", () => {
  const unit = unitText("agent");
  expect(valuesOf(unit, "AmbientCapabilities")).toEqual(["CAP_NET_BIND_SERVICE"]);
  expect(valuesOf(unit, "CapabilityBoundingSet")).toEqual(["CAP_NET_BIND_SERVICE"]);
  expect(valuesOf(unit, "PrivateUsers")).toEqual([]);
  expect(valuesOf(unit, "ProcSubset")).toEqual([]); // Host metrics read more of /proc than processes.
  const [credential] = valuesOf(unit, "LoadCredential");
  expect(credential).toBe("secret16:/etc/accel-agent/secret16");
  expect(agentFields.secret16_file.fallback).toBe(
    `/run/credentials/accel-agent.service/${credential?.split(":")[0]}`,
  );
  expect(agentFields.state_dir.fallback).toBe("/var/lib/accel-agent");
});

describe("a further agent of a host", () => {
  const plain = unitText("agent");
  const unit = instanceUnit(plain);
  const ofB = unit.replaceAll("%i", "b");
  const place = placeOf(agentProgram, "b");

  test("has files, state and a user of its own, and all else of the plain unit", () => {
    const one = (key: string): string => valuesOf(ofB, key).join(" ");
    expect(one("ConditionPathExists")).toBe(`${place.config} ${place.secret.source}`);
    expect(one("ExecStart")).toBe(`/usr/bin/accel-agent run --config ${place.config}`);
    expect(one("EnvironmentFile")).toBe("-/etc/accel-agent/b/environment");
    expect(one("LoadCredential")).toBe(`secret16:${place.secret.source}`);
    expect(`/var/lib/${one("StateDirectory")}`).toBe(place.stateDir);
    expect(one("User")).toBe("accel-agent-b");
    expect(ofB).toContain("=%S/accel-agent-b/compile-cache");
    const [lines, those] = [unit, plain].map((text) =>
      text.split("\n").filter((line) => !line.startsWith("#")),
    );
    const changed = lines
      ?.filter((line) => those?.includes(line) === false)
      .map((line) => line.split("=", 1)[0]);
    expect(changed).toEqual([
      "Description",
      "ConditionPathExists",
      "ConditionPathExists",
      "Environment",
      "EnvironmentFile",
      "ExecStart",
      "ExecReload",
      "User",
      "StateDirectory",
      "LoadCredential",
    ]);
    expect(those?.filter((line) => lines?.includes(line) === false)).toHaveLength(9);
  });

  test("a unit that cannot be made a template is told when packages are made", () => {
    expect(() =>
      instanceUnit(plain.replace("StateDirectory=accel-agent", "StateDirectory=edge")),
    ).toThrow(/StateDirectory/);
  });

  test.skipIf(isMissing)(`is verified clean, and no more exposed (${hint})`, () => {
    expect(verify(ofB)).toEqual({ status: 0, said: "" });
    const [own, all] = [ofB, plain].map((text) => {
      const { said } = analyze(text, "security", "--offline=true", "--no-pager");
      return Number(/Overall exposure level for \S+: (\d+\.\d+)/.exec(said)?.[1]);
    });
    expect(own).toBeLessThanOrEqual(all ?? 0);
  });
});

test("central has no capability at all", () => {
  const unit = unitText("central");
  expect(valuesOf(unit, "CapabilityBoundingSet")).toEqual([""]);
  expect(valuesOf(unit, "AmbientCapabilities")).toEqual([""]);
});

test("agent: systemd keeps its listening sockets over a restart, old and new ones while they change", () => {
  const kept = Number(valuesOf(unitText("agent"), "FileDescriptorStoreMax").join());
  expect(kept).toBeGreaterThanOrEqual(4);
});
