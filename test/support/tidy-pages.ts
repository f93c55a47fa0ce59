// The rules of pages for who reads the code, behind tidy.test.ts: a large folder says what it is, what a page names is there, and a decision is dated and listed.

import type { SourceFile } from "./tidy-text.ts";

/** With more files than this a folder says in its README.md what a reader needs before the first of them. */
const filesWithoutHead = 10;

/** What the README.md of a folder says, each as the beginning of a paragraph. */
const said = ["**What it is.**", "**Thread.**", "**Read first.**", "**Never.**"];

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** Folders of `src` with more than ten sources that do not say what they are, in which thread they run, in which order to read them and what they never do. */
export function folderFindings(files: readonly SourceFile[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { path } of files)
    if (/^src\/(?!demo\/site\/).*\.ts$/.test(path))
      counts.set(folderOf(path), (counts.get(folderOf(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > filesWithoutHead)
    .flatMap(([folder, count]) => {
      const head = files.find(({ path }) => path === `${folder}/README.md`);
      if (head === undefined) return [`folder: ${folder} has ${count} files and no README.md`];
      return said
        .filter((label) => !head.text.includes(`\n${label}`))
        .map((label) => `folder: ${folder}/README.md lacks the paragraph "${label}"`);
    });
}

/** Pages whose paths must exist: `src/x.ts` from the root, in the README.md of a folder also `x.ts` and `sub/x.ts` below it. */
const isPage = (path: string): boolean =>
  /^(?:ARCHITECTURE|CONTRIBUTING)\.md$|^docs\/internals\/|^src\/.*README\.md$/.test(path);

const fromRoot = /^(?:src|test|bench|config|systemd|docs|scripts|\.ci)\/[\w./-]*$/;
const fromHere = /^[\w./-]+\.ts$/;

/** A source and, right behind it, what of it is meant. */
const namedIn = /`((?:src|test|bench)\/[\w./-]+\.ts)` `(#?\w+)`/g;

/**
 * Paths between backticks that name nothing in the tree, names that the file before them does not have, and numbers of lines, which would be wrong by the next
 * change. `tree` is every path of it.
 */
export function pageFindings(
  files: readonly SourceFile[],
  tree: readonly string[],
): readonly string[] {
  const known = new Set(tree);
  for (const path of tree)
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1))
      known.add(path.slice(0, at)).add(path.slice(0, at + 1));
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  return files
    .filter(({ path }) => isPage(path))
    .flatMap(({ path, text }) => {
      const lacking = [...text.matchAll(namedIn)].flatMap(([, file = "", name = ""]) =>
        new RegExp(`(?<![\\w#])${name}\\b`).test(texts.get(file) ?? name)
          ? []
          : [`walk: ${path} says that ${file} has ${name}, which it has not`],
      );
      const here = path.includes("/") ? `${folderOf(path)}/` : "";
      const missing = [...text.matchAll(/`([^`\s]+)`/g)].flatMap(([, named = ""]) => {
        if (/\.ts:\d+$/.test(named)) return [`walk: ${path} names a line, ${named}`];
        const isMissing = fromRoot.test(named)
          ? !known.has(named)
          : here.startsWith("src/") && fromHere.test(named) && !known.has(here + named);
        return isMissing ? [`walk: ${path} names ${named}, which is not there`] : [];
      });
      return [...missing, ...lacking];
    });
}

const decisions = "docs/internals/decisions/";
const decisionHeads = ["Context", "Decision", "Rejected"];

/** Pages of decisions that lack a date or a heading, or that the index does not list. */
export function decisionFindings(files: readonly SourceFile[]): readonly string[] {
  const index = files.find(({ path }) => path === `${decisions}README.md`)?.text ?? "";
  return files
    .filter(({ path }) => path.startsWith(decisions) && !path.endsWith("/README.md"))
    .flatMap(({ path, text }) => [
      ...(index.includes(`(${path.slice(decisions.length)})`)
        ? []
        : [`decision: ${path} is not in the index`]),
      ...(/\n\n20\d\d-\d\d-\d\d\n\n/.test(text) ? [] : [`decision: ${path} has no date`]),
      ...decisionHeads
        .filter((head) => !text.includes(`\n## ${head}\n`))
        .map((head) => `decision: ${path} lacks the heading ${head}`),
    ]);
}
