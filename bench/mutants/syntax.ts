// The syntax of a source file as a tree of nodes that know where they stand, read with the parser that the bundler brings along.

import { parseAst } from "rolldown/parseAst";

/** An ESTree node. What it holds besides is asked for by name, and looked at before it is believed. */
export type Node = { readonly type: string; readonly start: number; readonly end: number } & {
  readonly [key: string]: unknown;
};

export function isNode(value: unknown): value is Node {
  return (
    typeof value === "object" &&
    value !== null &&
    "type" in value &&
    typeof value.type === "string" &&
    "start" in value &&
    typeof value.start === "number" &&
    "end" in value &&
    typeof value.end === "number"
  );
}

/** Throws where the text is no TypeScript. */
export function parse(text: string): Node {
  const program: unknown = parseAst(text, { lang: "ts", sourceType: "module" });
  if (!isNode(program)) throw new Error("the parser gave no node");
  return program;
}

export function child(node: Node, name: string): Node | undefined {
  const value = node[name];
  return isNode(value) ? value : undefined;
}

export function list(node: Node, name: string): readonly Node[] {
  const value = node[name];
  return Array.isArray(value) ? value.filter(isNode) : [];
}

export function textOf(node: Node, name: string): string | undefined {
  const value = node[name];
  return typeof value === "string" ? value : undefined;
}

/** Types say nothing at run time; casts are looked through. */
const casts = new Set(["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"]);

export function childrenOf(node: Node): readonly Node[] {
  if (casts.has(node.type)) return [child(node, "expression")].filter(isNode);
  if (node.type.startsWith("TS") || /^(?:Import|ExportAll)/.test(node.type)) return [];
  return Object.entries(node).flatMap(([name, value]) => {
    if (name === "typeAnnotation" || name === "returnType" || name.startsWith("type")) return [];
    return Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [];
  });
}

/** `a.b` of a call `a.b(…)`; undefined where it calls a bare name. */
export function calledMember(
  call: Node,
): { readonly object: Node; readonly name: string } | undefined {
  const callee = child(call, "callee");
  if (call.type !== "CallExpression" || callee?.type !== "MemberExpression") return undefined;
  const object = child(callee, "object");
  const property = child(callee, "property");
  const name = property === undefined ? undefined : textOf(property, "name");
  return object === undefined || name === undefined || callee["computed"] === true
    ? undefined
    : { object, name };
}
