// Whether the agent's user may read what root may.

import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { closedSettings } from "../../src/base/closed-settings.ts";
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
    const path = join(dir.path, "agent.yaml");
    writeFileSync(path, "", { mode: 0o600 });
    expect(closedSettings(path, join(dir.path, "state"))?.hint).toContain(`chmod 644 ${path}`);
    expect(closedSettings(path, dir.path)).toBeUndefined();
  });
});
