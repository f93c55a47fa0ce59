// The steps of docs/operations/backup.md as they stand there, run by a shell in a root of its own. In place of systemd is what the unit says of the state directory:
// with DynamicUser= it lies below `private`, and what the settings name is a link to it.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { mainFile, node } from "../../support/process.ts";
import { BackupRig, contentOf } from "./rig.ts";

vi.setConfig({ testTimeout: 200_000 }); // Commands are processes.

const read = (path: string): string =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const taken = "/backups/central-2026-11-22";

/** The commands of the restore: those of its first block, and the one that brings the key over, which goes before `restore`. */
function documentedSteps(): readonly [commands: string, key: string] {
  const restoring = read("docs/operations/backup.md").split("## Restoring")[1] ?? "";
  const [commands = "", key = ""] = [...restoring.matchAll(/```sh\n([^`]*)```/g)].map(
    ([, text]) => text ?? "",
  );
  return [commands, key];
}

/** Runs them in `root`; systemd is played, the rest are the real commands. */
function runSteps(steps: string, root: string, settings: string) {
  const bin = join(root, "bin");
  mkdirSync(bin, { recursive: true });
  const program = (name: string, text: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program("systemctl", `echo "$1" >> ${root}/systemctl`);
  program("accel-central", `exec ${node} ${mainFile} central "$@" --config ${settings}`);
  const placed = steps.replaceAll(/(?<= )\/(?=var|backups)/g, `${root}/`);
  return spawnSync("sh", ["-e", "-c", placed], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${bin}:${process.env["PATH"] ?? ""}` },
  });
}

test.each([
  ["on the host itself, the key in the state directory", true],
  ["on a new host, the key in the backup", false],
])("%s", async (_where, isSameHost) => {
  const unit = read("systemd/accel-central.service");
  expect(unit).toMatch(/^DynamicUser=yes$/m);
  expect(unit).toMatch(/^StateDirectory=accel-central$/m);
  using rig = new BackupRig();
  const { dir: root } = rig;
  const named = join(root, "var/lib/accel-central");
  const real = join(root, "var/lib/private/accel-central");
  mkdirSync(join(root, "var/lib/private"), { recursive: true });
  await rig.prepare(["a", "b"]);
  mkdirSync(join(root, "backups"));
  const options = isSameHost ? [] : ["--with-key"];
  expect(await rig.run("backup", join(root, taken), ...options)).toMatchObject({ code: 0 });
  const before = contentOf(rig.stateDir);
  rig.writeSettings(named);
  const [commands, key] = documentedSteps();
  expect(commands).toContain("accel-central restore");
  let steps = commands.replace(/(?=accel-central restore)/, key);
  if (isSameHost) {
    cpSync(rig.stateDir, real, { recursive: true });
    symlinkSync("private/accel-central", named);
  } else
    steps = commands
      .replace(/^(?:systemctl stop|mv) .*\n/gm, "")
      .replace("/var/lib/private/accel-central", "/var/lib/accel-central");
  const { status, stdout, stderr } = runSteps(steps, root, join(root, "central.yaml"));
  expect({ status, stdout, stderr }).toMatchObject({ status: 0, stderr: "" });
  expect(stdout).toContain("central as it was at");
  expect(stdout).not.toContain("THE KEY IS");
  // What the unit finds at its start: where the settings point, the key with it; and the old store is out of the way, whole.
  expect(contentOf(named).get("central.key")).toBe(before.get("central.key"));
  expect(await rig.epoch(named)).not.toBe(await rig.epoch(rig.stateDir));
  if (isSameHost) {
    expect(existsSync(join(real, "central.db"))).toBe(true);
    expect([...contentOf(`${real}.old`).keys()].sort()).toEqual([...before.keys()].sort());
    expect(readFileSync(join(root, "systemctl"), "utf8")).toBe("stop\nstart\n");
  }
});
