// The man pages that the packages bring.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf, exitStatuses } from "../../src/base/command.ts";
import { AccelError, FAULTS, type FaultCode } from "../../src/core/faults.ts";
import { programs } from "../../src/start/commands.ts";
import { tempDir } from "../support/temp-dir.ts";

// Plain JavaScript, without types.
const { manPage } = (await import(
  String(new URL("../../scripts/package/man.mjs", import.meta.url))
)) as { manPage: (facts: object) => string };

const page = manPage({
  program: "accel-agent",
  summary: "edge of a deployment site",
  version: "0.1.0~git20261127153700.0123abcd",
  date: "2026-11-27",
  commands: [],
  files: [],
});

test("the page has its whole version, and its foot the release alone", () => {
  expect(page).toContain('"2026-11-27" "accel-agent 0.1.0" "System administration"');
  expect(page).toContain(".SH VERSION\n0.1.0~git20261127153700.0123abcd\n");
});

test(".BR joins all that is in its line: it has one name and its section", () => {
  for (const [line] of page.matchAll(/^\.BR .*$/gm)) expect(line).toMatch(/^\.BR \S+ \(\d\)[,;]?$/);
});

/** The page of a program as the packages have it, as `man` shows it at this width. */
async function shown(which: "agent" | "central", width: number): Promise<string> {
  const commands = await Promise.all(
    Object.entries(programs[which]).map(async ([name, { summary, load }]) => ({
      name,
      summary,
      command: await load(),
    })),
  );
  const facts = { program: `accel-${which}`, summary: "s", version: "1.0.0", date: "2026-11-27" };
  using dir = tempDir();
  const path = join(dir.path, "page.8");
  writeFileSync(path, manPage({ ...facts, commands, files: [] }));
  const env = { ...process.env, MANWIDTH: String(width), LC_ALL: "C.UTF-8" };
  const { stdout, stderr } = spawnSync("man", ["--warnings", "-l", path], {
    encoding: "utf8",
    env,
  });
  expect(stderr).toBe("");
  return stdout;
}

const manMissing = spawnSync("man", ["--version"]).error !== undefined;

test.skipIf(manMissing).each(["agent", "central"] as const)(
  "accel-%s: man shows it without a complaint, filled to the width (needs man: apt-get install man-db)",
  async (which) => {
    const text = await shown(which, 90);
    // Lines of usage stand as they are; options, and what is said of them, are filled.
    const long = text
      .split("\n")
      .filter((line) => line.length > 90 && !line.trim().startsWith(`accel-${which} `));
    expect(long).toEqual([]);
    for (const name of Object.keys(programs[which]))
      expect(text).toContain(`accel-${which} ${name}`);
    expect(text.replaceAll(/\s+/g, " ")).toContain("--config FILE settings (default /etc/accel-");
  },
);

test.skipIf(manMissing)(
  "the page has one table of exit statuses, and it is what commands end with (needs man: apt-get install man-db)",
  async () => {
    const [, section = ""] =
      /\nEXIT STATUS\n([^]*?)\nFILES\n/.exec(await shown("central", 90)) ?? [];
    const told = section
      .split(/^ {7}(?=\d )/m)
      .slice(1)
      .map((part) => part.replaceAll(/\s+/g, " ").trim());
    expect(told).toEqual(exitStatuses.map(({ status, means }) => `${status} ${means}`));
    // Every key of the catalog is a code.
    const codes = Object.keys(FAULTS) as FaultCode[];
    for (const { status, faults } of exitStatuses)
      if (status > 1)
        expect(codes.filter((code) => exitCodeOf(new AccelError(code, "")) === status)).toEqual(
          codes.filter((code) => faults.includes(code)),
        );
  },
);
