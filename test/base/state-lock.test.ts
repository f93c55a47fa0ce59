// One process per state directory, told by the kernel: a killed one leaves no lock.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lockStateDir } from "../../src/base/state-lock.ts";
import { AccelError } from "../../src/core/faults.ts";
import { tempDir } from "../support/temp-dir.ts";

const holder = `
  import { lockStateDir } from ${JSON.stringify(new URL("../../src/base/state-lock.ts", import.meta.url).href)};
  globalThis.held = lockStateDir(process.argv[1]);
  console.log("locked");
  setInterval(() => {}, 60_000);
`;

async function holdElsewhere(stateDir: string): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    ["--input-type=module-typescript", "-e", holder, stateDir],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  if (child.stdout === null) throw new Error("no output");
  await once(child.stdout, "data", { signal: AbortSignal.timeout(60_000) });
  return child;
}

function faultOf(stateDir: string): string {
  try {
    using _ = lockStateDir(stateDir);
    return "locked";
  } catch (error) {
    if (error instanceof AccelError) return error.code;
    throw error;
  }
}

test("a second process is refused, also one after SIGKILL is not", async () => {
  using dir = tempDir();
  const child = await holdElsewhere(dir.path);
  expect(faultOf(dir.path)).toBe("STATE_DIR_LOCKED");
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  expect(faultOf(dir.path)).toBe("locked");
});

test("the same process is refused until it releases", () => {
  using dir = tempDir();
  {
    using _ = lockStateDir(dir.path);
    expect(faultOf(dir.path)).toBe("STATE_DIR_LOCKED");
  }
  expect(faultOf(dir.path)).toBe("locked");
});

test("the directory is made, private", () => {
  using dir = tempDir();
  const stateDir = join(dir.path, "a/b");
  using _ = lockStateDir(stateDir);
  expect(statSync(stateDir).mode & 0o777).toBe(0o700);
});

test.each(["file", "file/below"])("%s cannot be a state directory", (name) => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "file"), "");
  expect(faultOf(join(dir.path, name))).toBe("STATE_DIR_UNUSABLE");
});

test("a lock file that is none is an error, not a lock", () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "lock"), "something else ".repeat(300));
  expect(faultOf(dir.path)).toBe("STATE_DIR_UNUSABLE");
});
