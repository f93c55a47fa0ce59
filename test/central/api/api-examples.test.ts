// docs/api.md is true: its shell examples, one after another in one shell against a whole central, print what stands below them.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { start, settingsOf } from "../../support/central-whole.ts";
import { tempDir } from "../../support/temp-dir.ts";

const document = readFileSync(join(import.meta.dirname, "../../../docs/api.md"), "utf8");
const blocks = [...document.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(
  ([, language = "", text = ""]) => ({ language, text }),
);
const examples = blocks.flatMap(({ language, text }, at) =>
  language === "sh" ? [{ script: text, answer: blocks[at + 1] }] : [],
);
const end = "--- end of an example ---";

/** What the document leaves open is left open. */
function expected(value: unknown): unknown {
  if (typeof value === "string" && value.includes("…")) return expect.any(String);
  if (Array.isArray(value)) return value.map((one) => expected(one));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, expected(one)]));
}

test("every example of docs/api.md prints what it says", { timeout: 180_000 }, async () => {
  using dir = tempDir();
  using work = tempDir();
  await using central = await start(settingsOf(dir.path));
  // curl is run as it stands there, by the shell that readers have.
  const script = examples.map((one) => `${one.script}printf '\\n${end}\\n'\n`).join("");
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
    cwd: work.path,
    env: { PATH: process.env["PATH"], CENTRAL: central.url },
  });
  const printed = stdout.split(`${end}\n`).slice(0, -1);
  expect(printed).toHaveLength(examples.length);
  expect(examples.length).toBeGreaterThanOrEqual(14);
  for (const [at, { script: asked, answer }] of examples.entries()) {
    const text = (printed[at] ?? "").trim();
    if (answer?.language === "json")
      expect(JSON.parse(text), asked).toEqual(expected(JSON.parse(answer.text)));
    else expect(text, asked).toBe(answer?.text.trim());
  }
});
