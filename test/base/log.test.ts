// The program's log as it leaves the process: one JSON line an event, no secret in any of them.

import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

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
