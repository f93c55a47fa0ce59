// Every link of a page to another page, or to a heading, leads somewhere.

import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const pages = globSync(["*.md", "docs/**/*.md"], { cwd: root });
const withoutCode = (text: string): string => text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");

/** As GitHub makes them of headings: letters and digits in lower case, blanks become hyphens. */
function anchorsOf(path: string): ReadonlySet<string> {
  const headings = withoutCode(readFileSync(path, "utf8")).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test.each(pages)("%s", (page) => {
  const text = withoutCode(readFileSync(join(root, page), "utf8"));
  const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
    if (/^(?:https?|mailto):/.test(link)) return [];
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? join(root, page) : join(root, dirname(page), file);
    if (!existsSync(target)) return [link];
    return anchor === undefined || anchorsOf(target).has(anchor) ? [] : [link];
  });
  expect(broken).toEqual([]);
});
