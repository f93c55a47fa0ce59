// What the unit notes at each end (ExecStopPost=): its own line, run by the shell, and read as the next process reads it.

import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { uncleanEnds } from "../../../src/agent/admin/run-ends.ts";
import { parseServiceEnds } from "../../../src/base/service-ends.ts";
import { tempDir } from "../../support/temp-dir.ts";

const unit = readFileSync(new URL("../../../systemd/accel-agent.service", import.meta.url), "utf8");
const [, quoted = ""] = /^ExecStopPost=-\/bin\/sh -c '([^']*)'$/m.exec(unit) ?? [];
const script = quoted.replaceAll("%%", "%");

/** Ends one run, as systemd tells of it. */
function ended(directory: string, invocation: string, result: string, status: string): void {
  execFileSync("/bin/sh", ["-c", script], {
    env: {
      PATH: process.env["PATH"],
      STATE_DIRECTORY: directory,
      INVOCATION_ID: invocation,
      SERVICE_RESULT: result,
      EXIT_STATUS: status,
    },
  });
}

const id = (no: number): string => no.toString(16).padStart(32, "0");
const day = 1_767_225_600;

test("in a file that is full the newest end takes the place of the last: a stop in good order is not taken for an end of the next start", () => {
  using dir = tempDir();
  const path = join(dir.path, "last-end");
  // Starts failed until there was no room, long ago.
  const lines = Array.from({ length: 72 }, (_, no) => `${day + no} ${id(no)} exit-code 1\n`);
  writeFileSync(path, `\n${lines.join("")}`);
  expect(statSync(path).size).toBeGreaterThanOrEqual(4_000);
  for (let no = 100; no < 105; no++) ended(dir.path, id(no), "exit-code", "1");
  ended(dir.path, id(200), "success", "");
  const text = readFileSync(path, "utf8");
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
  const said = parseServiceEnds(text);
  expect(said.at(-1)).toMatchObject({ invocation: id(200), result: "success", status: "" });
  expect(said.slice(0, 71).map(({ invocation }) => invocation)).toEqual(
    Array.from({ length: 71 }, (_, no) => id(no)),
  );
  const seen = new Date(day * 1_000).toISOString();
  const run = { invocation: id(999), boot: "b", seen, served: true, ended: seen };
  const ends = uncleanEnds(run, { said, boot: "b", at: new Date() });
  expect(ends.at(-1)?.at).toBe(new Date((day + 70) * 1_000).toISOString());
  expect(ends.some(({ hasMore }) => hasMore)).toBe(true);
});

test("an end that finds room is added, and is not said to stand for others", () => {
  using dir = tempDir();
  ended(dir.path, id(1), "signal", "KILL");
  ended(dir.path, id(2), "watchdog", "ABRT");
  expect(parseServiceEnds(readFileSync(join(dir.path, "last-end"), "utf8"))).toEqual([
    { invocation: id(1), result: "signal", status: "KILL", at: expect.any(Date) },
    { invocation: id(2), result: "watchdog", status: "ABRT", at: expect.any(Date) },
  ]);
});
