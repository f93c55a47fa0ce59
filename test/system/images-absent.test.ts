// A host without sharp: the program as it is built, beside the two libraries that it cannot do without.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { builtTree } from "../support/built-tree.ts";
import { node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";

const installed = join(import.meta.dirname, "../../node_modules");

test("check and doctor say what is missing, and that only pictures miss it", () => {
  using tree = builtTree();
  const modules = join(dirname(tree.main), "../node_modules");
  rmSync(modules);
  mkdirSync(modules);
  for (const name of ["better-sqlite3", "pino"])
    symlinkSync(join(installed, name), join(modules, name));
  using dir = tempDir();
  const config = join(dir.path, "agent.yaml");
  const secret = join(dir.path, "secret16");
  writeFileSync(secret, "0".repeat(32), { mode: 0o600 });
  const settings = {
    central_url: "http://127.0.0.1:1",
    name16: "0123456789abcdef",
    secret16_file: secret,
    state_dir: join(dir.path, "state"),
  };
  const write = (images: object): void =>
    writeFileSync(config, JSON.stringify({ ...settings, images })); // YAML is a superset.
  const said = (command: string): string => {
    const args = [tree.main, "agent", command, "--config", config];
    const { stdout, stderr } = spawnSync(node, args, { encoding: "utf8" });
    return stdout + stderr;
  };
  write({});
  expect(said("check")).toMatch(/: valid, .*\nsharp is not installed: pictures are sent as/);
  expect(said("doctor")).toMatch(/images\s+sharp is not installed: this host can make no/);
  write({ encoder: false });
  expect(said("check")).not.toContain("sharp");
  expect(said("doctor")).toMatch(/images\s+images\.encoder is false/);
});
