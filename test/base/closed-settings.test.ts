// Whether the agent's user may read what root may.

import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  closedAuthority,
  closedDirectories,
  closedSettings,
  closedWay,
} from "../../src/base/closed-settings.ts";
import { tempDir } from "../support/temp-dir.ts";

test("a file that is no unit's, or is not there, is nobody's business", () => {
  using dir = tempDir();
  const path = join(dir.path, "agent.yaml");
  expect(closedSettings(path, dir.path)).toBeUndefined();
  writeFileSync(path, "", { mode: 0o600 });
  expect(closedSettings(path)).toBeUndefined();
});

describe.skipIf(process.getuid?.() !== 0)("as root", () => {
  const [user, group] = [64_001, 64_002];
  test.each([
    ["everybody may", 0, 0, 0o644, true],
    ["root alone may", 0, 0, 0o600, false],
    ["root's group may", 0, 0, 0o640, false],
    ["the agent's group may", 0, group, 0o640, true],
    ["the agent's own user may", user, 0, 0o400, true],
    ["the agent's own user may not, and everybody else may", user, 0, 0o044, false],
  ])("%s", (_, uid, gid, mode, isReadable) => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const [path, stateDir] = [join(dir.path, "agent.yaml"), join(dir.path, "state")];
    mkdirSync(stateDir);
    chownSync(stateDir, user, group);
    writeFileSync(path, "");
    chownSync(path, uid, gid);
    chmodSync(path, mode);
    const shown = `its mode is ${mode.toString(8).padStart(3, "0")}. A reload fails`;
    expect(closedSettings(path, stateDir)?.message ?? "").toContain(isReadable ? "" : shown);
    expect(closedSettings(path, stateDir) === undefined).toBe(isReadable);
  });

  test("an agent that has not run yet has a user that owns nothing; one that root runs reads all", () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const path = join(dir.path, "agent.yaml");
    writeFileSync(path, "", { mode: 0o600 });
    expect(closedSettings(path, join(dir.path, "state"))?.hint).toBe(
      `As root: chmod 644 ${path}. There is nothing secret in the settings file.`,
    );
    expect(closedSettings(path, dir.path)).toBeUndefined();
  });

  /** A file that all may read, in two directories of which nobody but root may enter the lower one; and the state directory of a user. */
  function closedRig(root: string) {
    chmodSync(root, 0o755);
    const [upper, lower, stateDir] = [join(root, "a"), join(root, "a/b"), join(root, "state")];
    mkdirSync(lower, { recursive: true });
    mkdirSync(stateDir);
    chownSync(stateDir, user, group);
    const path = join(lower, "agent.yaml");
    writeFileSync(path, "");
    chmodSync(lower, 0o700);
    return { path, upper, lower, stateDir };
  }

  test("the directory that the agent's own user may not enter is named, and not the file, which all may read", () => {
    using dir = tempDir();
    const { path, upper, lower, stateDir } = closedRig(dir.path);
    const closed = closedSettings(path, stateDir);
    expect(closed).toEqual({
      message: `the settings file ${path} cannot be read by the agent, which has a user of its own: it may not enter ${lower}, whose mode is 700. A reload fails, and so does the next start`,
      hint: `As root: chmod 755 ${lower}. There is nothing secret in the settings file.`,
    });
    expect(closedAuthority(path, "", stateDir)).toEqual({
      message: `central_ca_file ${path} cannot be read by the agent, which has a user of its own: it may not enter ${lower}, whose mode is 700. The next start fails`,
      hint: `As root: chmod 755 ${lower}.`,
    });
    expect(closedAuthority(undefined, "", stateDir)).toBeUndefined();
    // Before there is a file: the directory that `join` would write it to.
    expect(closedDirectories(join(lower, "c", "agent.yaml"), stateDir)?.hint).toBe(
      `As root: chmod 755 ${lower}`,
    );
    const link = join(dir.path, "link.yaml");
    symlinkSync(path, link);
    expect(closedSettings(link, stateDir)?.hint).toContain(`chmod 755 ${lower}.`);
    chmodSync(upper, 0o750);
    chmodSync(path, 0o600);
    expect(closedSettings(path, stateDir)).toMatchObject({
      message: expect.stringContaining(
        `: it may not enter ${upper}, whose mode is 750, and it may not enter ${lower}, whose mode is 700, and its mode is 600. A reload`,
      ),
      hint: `As root: chmod 755 ${upper} ${lower}; chmod 644 ${path}. There is nothing secret in the settings file.`,
    });
    chownSync(upper, 0, group);
    chownSync(lower, user, 0);
    expect(closedDirectories(path, stateDir)).toBeUndefined();
  });

  test("a process that may not come to a file says which directory keeps it out", () => {
    using dir = tempDir();
    const { path, upper, lower } = closedRig(dir.path);
    const asUser = (): string | undefined => {
      process.seteuid?.(user);
      try {
        return closedWay(path);
      } finally {
        process.seteuid?.(0);
      }
    };
    expect(closedWay(path)).toBeUndefined();
    expect(asUser()).toBe(
      `The agent, which has a user of its own, has to enter ${lower}, whose mode is 700. As root: chmod 755 ${lower}`,
    );
    chmodSync(upper, 0o700);
    expect(asUser()).toContain(`has to enter ${upper}, whose mode is 700.`);
    for (const at of [upper, lower]) chmodSync(at, 0o755);
    expect(asUser()).toBeUndefined();
  });
});
