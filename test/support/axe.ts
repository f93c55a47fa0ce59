// What axe finds wrong with a page for those who do not see it, or have no pointer.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

type AxeResult = {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
};

/** What axe calls serious or critical. */
export async function axe(page: Page): Promise<readonly string[]> {
  const source = await readFile(axeSource, "utf8");
  await page.evaluate(source);
  const { violations } = await page.evaluate<AxeResult>("axe.run()");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`);
}
