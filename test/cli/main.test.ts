// The program as a user meets it: help, version, exit codes, what to do next.

import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mainFile, node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";

type Ended = { readonly code: number | null; readonly out: string; readonly err: string };

function run(args: readonly string[], file = mainFile): Ended {
  const { status, stdout, stderr } = spawnSync(node, [file, ...args], { encoding: "utf8" });
  return { code: status, out: stdout, err: stderr };
}

const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { version: string };

test.each([
  [
    "agent --help",
    /^accel-agent <command> \[options\]\n\n {2}run +serve the domains[^]*\n {2}version +print/,
  ],
  ["central help", /^accel-central <command> [^]*\n {2}serve +run the service/],
  ["agent version", new RegExp(`^accel-agent ${version}\n$`)],
  ["agent -v", new RegExp(`^accel-agent ${version}\n$`)],
  ["agent version --help", /^Prints the version\.\n\naccel-agent version\n$/],
  ["central help version", /\n\naccel-central version\n$/],
  ["agent help logs", /^Shows the newest request records[^]*--lines N, -n N/],
  ["central --version", new RegExp(`^accel-central ${version}\n$`)],
  ["agent run --help", /^Serves the domains[^]*\n\naccel-agent run \[options\]\n/],
  ["agent check --help", /\n\naccel-agent check \[options\]\n/],
  ["agent status --help", /\n\naccel-agent status \[options\]\n[^]*--json/],
  ["agent cache --help", /\naccel-agent cache search DOMAIN PATTERN/],
  ["agent bots -h", /\naccel-agent bots check IP/],
  ["agent why --help", /\naccel-agent why DECISION\n/],
  ["agent logs --help", /\naccel-agent logs backlog/],
  [
    "central clear --help",
    /\naccel-central clear DOMAIN PATTERN… [^]*\nExit status: 0 [^]*, 3 accepted/,
  ],
  ["central status --help", /\naccel-central status \[options\]/],
])("%s is answered, exit 0", (args, out) => {
  expect(run(args.split(" "))).toEqual({ code: 0, out: expect.stringMatching(out), err: "" });
});

test.each([
  ["", 2, /^usage: /],
  ["agnet run", 2, /^usage: /],
  ["agent", 2, /^accel-agent <command>/],
  [
    "agent satus",
    2,
    /^accel-agent: unknown command satus; did you mean status\?\n {2}See accel-agent --help\.\n$/,
  ],
  [
    "agent restart",
    2,
    /^accel-agent: unknown command restart; systemd does that: systemctl restart accel-agent\n/,
  ],
  ["agent stop --instance shop", 2, /; systemd does that: systemctl stop accel-agent@shop\n/],
  ["central restart now", 2, /; systemd does that: systemctl restart accel-central\n/],
  ["agent restart --config x", 2, /; systemd does that: systemctl restart accel-agent\n/],
  ["agent restart shop", 2, /; systemd does that: systemctl restart accel-agent@shop\n/],
  ["central reload", 2, /; systemd does that: systemctl reload accel-central\n/],
  ["agent constructor", 2, /^accel-agent: unknown command constructor\n/],
  ["agent version --bogus", 2, /^accel-agent: version: unexpected argument '--bogus'\n/],
  ["central version x", 2, /^accel-central: version: unexpected argument 'x'\n/],
  ["central serv", 2, /did you mean serve\?/],
  ["agent status --jsno", 2, /^accel-agent: .*--jsno[^]*\n {2}See accel-agent status --help\.\n$/],
  [
    "agent cache purge",
    2,
    /^accel-agent: cache purge: one of search, clear, stats, check\n {2}See accel-agent cache --help\.\n$/,
  ],
  [
    "agent check --config /nowhere/agent.yaml",
    2,
    /^accel-agent: the settings file \/nowhere\/agent\.yaml cannot be read: ENOENT[^]*\n {2}Correct the settings file/,
  ],
  [
    "agent status --state-dir /nowhere",
    1,
    /^accel-agent: no answer on \/nowhere\/control\.sock: [^]*\n {2}Is the program running/,
  ],
  [
    "central clear a.example x --api-url http://127.0.0.1:1 --token-file /dev/null",
    2,
    /^accel-central: the token file \/dev\/null must hold one token/,
  ],
  [
    "central status --state-dir /nowhere",
    1,
    /^accel-central: no answer on \/nowhere\/control\.sock: /,
  ],
])("'%s' ends with %i", (args, code, err) => {
  const given = args === "" ? [] : args.split(" ");
  expect(run(given)).toEqual({ code, out: "", err: expect.stringMatching(err) });
});

test("a settings file is checked whole: every error with file and line", () => {
  const file = new URL("../../config/agent.yaml", import.meta.url).pathname;
  const { code, err } = run(["agent", "check", "--config", file]);
  expect(code).toBe(2);
  expect(err.split("\n").slice(0, 3)).toEqual([
    `accel-agent: the settings file ${file} is not valid:`,
    `  ${file}:1: central_url is required`,
    `  ${file}:1: name16 is required`,
  ]);
});

test("installed under a program's name it is that program", () => {
  using dir = tempDir();
  const path = join(dir.path, "accel-central");
  symlinkSync(mainFile, path);
  expect(run(["version"], path).out).toBe(`accel-central ${version}\n`);
});
