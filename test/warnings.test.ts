// docs/warnings.md has every warning, and each warning of the table is raised somewhere.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { warningCodes } from "../src/base/warning-codes.ts";
import { FAULTS } from "../src/core/faults.ts";
import { expectGenerated } from "./support/generated.ts";

const root = join(import.meta.dirname, "..");
const sources = globSync("src/**/*.ts", { cwd: root })
  .filter((path) => path !== join("src", "base", "warning-codes.ts"))
  .map((path) => readFileSync(join(root, path), "utf8"));

const head = `# Warnings

\`accel-agent status\` and \`accel-central status\` list the warnings in force, each with what is concerned, since when, and
what to do. The status page and the reports to central have the same list, and Prometheus has it as
\`accel_agent_warning{code, severity}\` and \`accel_central_warning{code, severity}\`. A warning ends by itself when its cause is gone.
[operations/monitoring.md](operations/monitoring.md) has the alert rules.

\`since TIME\` is when a warning was found first, also where the agent was restarted meanwhile and found it again within two minutes. What is found within ten seconds
of a start may have begun earlier: \`or up to 14 s before, while nobody looked\` where the agent before knew that it was not so then, \`or before, found at a start\` where
nobody knows. With \`--json\` that is \`not_before\`: when it was known last not to be so, or null.

- \`error\`: visitors, clears or records are harmed now.
- \`warning\`: they will be, or something is not as it was asked for.
- \`info\`: good to know.
`;

test("docs/warnings.md is written from the table", () => {
  const part = (of: "agent" | "central", title: string): string =>
    [
      `## ${title}`,
      ...Object.entries(warningCodes)
        .filter(([, meaning]) => meaning.of === of || meaning.of === "both")
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([code, { means, todo }]) => `### \`${code}\`\n\n${means}\n\n**What to do:** ${todo}`),
    ].join("\n\n");
  expectGenerated(
    "docs/warnings.md",
    () => `${[head, part("agent", "Of the agent"), part("central", "Of central")].join("\n")}\n`,
  );
});

test("each warning of the table is raised somewhere", () => {
  const isNamed = (code: string): boolean =>
    sources.some((text) => text.includes(`"${code}"`)) ||
    (Object.hasOwn(FAULTS, code.toUpperCase()) && !code.startsWith("_"));
  const made = new Set(["certificate_expired", "certificate_expiring", "link_failing"]);
  const idle = Object.keys(warningCodes).filter((code) => !made.has(code) && !isNamed(code));
  expect(idle).toEqual([]);
});

test("each text is made of whole sentences", () => {
  for (const [code, { means, todo }] of Object.entries(warningCodes))
    for (const text of [means, todo]) expect(text, code).toMatch(/^[A-Z`][^]*[.]$/);
});
