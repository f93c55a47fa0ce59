// The man pages that the packages bring.

import { expect, test } from "vitest";

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
