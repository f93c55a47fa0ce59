// All mutants of a source file.

import { apply, type Mutant } from "./mutant.ts";
import { isLogging, proposals } from "./operators.ts";
import { child, childrenOf, parse, textOf, type Node } from "./syntax.ts";

const shownMax = 140;

export function mutantsOf(file: string, text: string): readonly Mutant[] {
  const found: Mutant[] = [];
  const times = new Map<string, number>();
  const lines = text.split("\n");
  const visit = (node: Node, parents: readonly Node[]): void => {
    const place = { node, parents, text };
    if (isLogging(place)) return;
    for (const { operator, shown, edit, isTyped } of proposals(place)) {
      const lineNo = text.slice(0, edit.start).split("\n").length;
      const line = (lines[lineNo - 1] ?? "").trim();
      const [within, change] = [nameOf([...parents, node], text), changeOf(shown, edit, text)];
      const same = [within, line, change].join("\n");
      const nth = (times.get(same) ?? 0) + 1;
      times.set(same, nth);
      const name = { file, within, line, change, ...(nth === 1 ? {} : { nth }) };
      found.push({ name, operator, edit, lineNo, isTyped: isTyped ?? true });
    }
    for (const below of childrenOf(node)) visit(below, [...parents, node]);
  };
  visit(parse(text), []);
  return found;
}

function changeOf(shown: Node, edit: Mutant["edit"], text: string): string {
  const before = text.slice(shown.start, shown.end);
  const after = apply(before, {
    start: edit.start - shown.start,
    end: edit.end - shown.start,
    replacement: edit.replacement,
  });
  return `${brief(before)} → ${after === ";" ? "nothing" : brief(after)}`;
}

function brief(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  const half = shownMax / 2;
  return flat.length <= shownMax ? flat : `${flat.slice(0, half)}…${flat.slice(-half)}`;
}

function nameOf(path: readonly Node[], text: string): string {
  const names: string[] = [];
  for (const [at, node] of path.entries()) {
    const key = child(node, "key") ?? child(node, "id");
    if (key === undefined) continue;
    const isNamed =
      /^(?:Function|Class)Declaration$|^(?:Method|Property)Definition$/.test(node.type) ||
      (/^(?:VariableDeclarator|Property)$/.test(node.type) &&
        /Function/.test(path[at + 1]?.type ?? ""));
    if (isNamed) names.push(textOf(key, "name") ?? text.slice(key.start, key.end));
  }
  return names.length === 0 ? "(module)" : names.join(".");
}
