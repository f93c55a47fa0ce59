// The program's log as it leaves the process: one JSON line an event, no secret in any of them.

import { spawnSync } from "node:child_process";
import { fstatSync, openSync, closeSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempDir } from "../support/temp-dir.ts";

const canary = "c4n4ryc4n4ryc4n4ryc4n4ry";

function logged(script: string, level = "info"): readonly Record<string, unknown>[] {
  const url = new URL("../../src/base/log.ts", import.meta.url).href;
  const source = `
    import { createLog } from ${JSON.stringify(url)};
    const log = createLog("accel-agent", ${JSON.stringify(level)});
    const canary = ${JSON.stringify(canary)};
    ${script}`;
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ["--input-type=module-typescript", "-e", source],
    { encoding: "utf8" },
  );
  expect([status, stderr]).toEqual([0, ""]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Record<string, unknown> => JSON.parse(line));
}

test("one line an event, the level as a word, time as ISO", () => {
  const lines = logged(`
    log.debug("not shown");
    log.info({ domain: "a.example" }, "first\\nsecond");
    log.child({ worker: 2 }).error({ err: new TypeError("broken") }, "worker failed");
    log.level = "debug";
    log.debug("shown");`);
  expect(lines).toEqual([
    expect.objectContaining({
      level: "info",
      program: "accel-agent",
      domain: "a.example",
      msg: "first\nsecond",
    }),
    expect.objectContaining({
      level: "error",
      worker: 2,
      err: expect.objectContaining({ type: "TypeError", message: "broken" }),
    }),
    expect.objectContaining({ level: "debug", msg: "shown" }),
  ]);
  expect(lines[0]?.["time"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test("a logged line is out before the process is killed", () => {
  const url = new URL("../../src/base/log.ts", import.meta.url).href;
  const { stdout } = spawnSync(
    process.execPath,
    [
      "--input-type=module-typescript",
      "-e",
      `import { createLog } from ${JSON.stringify(url)}; createLog("x", "info").info("last words"); process.kill(process.pid, "SIGKILL");`,
    ],
    { encoding: "utf8" },
  );
  expect(stdout).toContain("last words");
});

test("planted secrets never appear, wherever they stand and however they are spelled", () => {
  const lines = logged(`
    for (const key of ["secret16", "token", "access_token", "accessToken", "api_token", "refresh-token", "Authorization",
      "proxy-authorization", "password", "private_key", "privateKey", "cookie", "Set-Cookie"]) {
      log.info({ [key]: canary }, "flat");
      log.info({ a: { [key]: canary } }, "nested");
      log.info({ a: { b: { c: [{ [key]: canary }] } } }, "deep");
      log.info({ headers: { [key]: ["]" + canary, canary] } }, "list");
      log.info({ [key]: 'quoted " and \\\\' + canary }, "escaped");
      log.child({ [key]: canary }).info("child");
      log.error({ err: Object.assign(new Error("x"), { request: { [key]: canary } }) }, "error");
      log.error(Object.assign(new Error("x"), { cause: Object.assign(new Error("y"), { [key]: canary }) }));
    }
    log.info("sent Authorization: Bearer " + canary);
    log.info({ error: "Basic " + btoa(canary + ":" + canary) }, "refused");`);
  expect(lines).toHaveLength(13 * 8 + 2);
  const text = JSON.stringify(lines);
  expect(text).not.toContain(canary);
  expect(text).not.toContain(btoa(canary));
  expect(lines[0]).toMatchObject({ secret16: "[secret]", msg: "flat" });
});

test("what only resembles a secret is left alone", () => {
  const fields = { tokens: "3 left", token_count: "5", reason: "bearer of bad news", key: canary };
  expect(logged(`log.info(${JSON.stringify(fields)}, "Basic rules")`)).toEqual([
    expect.objectContaining({ ...fields, msg: "Basic rules" }),
  ]);
});

/** Runs a program with both of its outputs in a file, of which JOURNAL_STREAM says that it is the journal, or that another one is. */
function toJournal(args: readonly string[], { isTold = true } = {}): readonly string[] {
  using dir = tempDir();
  const path = join(dir.path, "journal");
  const fd = openSync(path, "w");
  const { dev, ino } = fstatSync(fd, { bigint: true });
  const JOURNAL_STREAM = `${dev}:${isTold ? ino : ino + 1n}`;
  spawnSync(process.execPath, args, {
    stdio: ["ignore", fd, fd],
    env: { ...process.env, JOURNAL_STREAM },
  });
  closeSync(fd);
  return readFileSync(path, "utf8").split("\n").slice(0, -1);
}

const everyLevel = `
  import { createLog } from ${JSON.stringify(new URL("../../src/base/log.ts", import.meta.url).href)};
  const log = createLog("accel-agent", "trace");
  for (const level of ["trace", "debug", "info", "warn", "error", "fatal"]) log.child({ worker: 1 })[level]("first\\nsecond <3>");`;
const scriptArgs = ["--input-type=module-typescript", "-e", everyLevel];

test("lines to the journal carry the priority of their level, and are JSON behind it", () => {
  const lines = toJournal(scriptArgs);
  expect(lines.map((line) => line.slice(0, 3))).toEqual(["<7>", "<7>", "<6>", "<4>", "<3>", "<2>"]);
  for (const line of lines)
    expect(JSON.parse(line.slice(3))).toMatchObject({ worker: 1, msg: "first\nsecond <3>" });
});

test("lines to another stream than the journal's are JSON alone", () => {
  const lines = toJournal(scriptArgs, { isTold: false });
  expect(lines.map((line) => (JSON.parse(line) as { level: string }).level)).toEqual([
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "fatal",
  ]);
});

test("each line of a failed start is an error of the journal", () => {
  const main = join(import.meta.dirname, "../../src/main.ts");
  const lines = toJournal([main, "agent", "run", "--config", "/nonexistent/agent.yaml"]);
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line).toMatch(/^<3>[^<]/);
  expect(lines.join("\n")).toContain("/nonexistent/agent.yaml");
});
