// What can go wrong in one place: the kinds of edits, each a function from a node to the edits that it allows there. They keep types as they are, mostly.

import { calledMember, child, list, textOf, type Node } from "./syntax.ts";
import type { Edit } from "./mutant.ts";

export type Proposal = {
  readonly operator: string;
  /** Shown before and after. */
  readonly shown: Node;
  readonly edit: Edit;
  /** False: the compiler's word about it does not count. */
  readonly isTyped?: false;
};

export type Place = {
  readonly node: Node;
  readonly parents: readonly Node[];
  readonly text: string;
};

/** Maps: what is looked up are words of sources, `toString` among them, which every object has. */
type Swaps = ReadonlyMap<string, string>;
const swaps = (pairs: Readonly<Record<string, string>>): Swaps => new Map(Object.entries(pairs));

const boundaries = swaps({ "<": "<=", "<=": "<", ">": ">=", ">=": ">" });
const equalities = swaps({ "===": "!==", "!==": "===" });
const sums = swaps({ "+": "-", "-": "+", "*": "/", "/": "*", "%": "*" });
const logic = swaps({ "&&": "||", "||": "&&" });
const calls = swaps({ min: "max", max: "min", some: "every", every: "some" });
/** Calls whose result has the type of what they are called on, more or less. */
const passing = new Set([
  ..."where andWhere orderBy filter toSorted sort toReversed reverse".split(" "),
  ..."trim toLowerCase toUpperCase".split(" "),
]);
/** Below, one more; from here on, a thousandfold: the bound is gone. */
const boundMin = 10;
const logCall = /(?:^|[.#])log(?:ger)?\.(?:trace|debug|info|warn|error|fatal)$/i;

export function proposals(place: Place): readonly Proposal[] {
  return [
    ...binaries(place),
    ...conditions(place),
    ...literals(place),
    ...removals(place),
    ...transactions(place),
    ...callNames(place),
    ...sql(place),
  ];
}

/** The prose of logs is nobody's promise. */
export function isLogging({ node, text }: Place): boolean {
  const callee = node.type === "CallExpression" ? child(node, "callee") : undefined;
  return callee !== undefined && logCall.test(text.slice(callee.start, callee.end));
}

function binaries({ node, text }: Place): readonly Proposal[] {
  const [left, right] = [child(node, "left"), child(node, "right")];
  const operator = textOf(node, "operator");
  if (left === undefined || right === undefined || operator === undefined) return [];
  const swap = (to: string | undefined, name: string): readonly Proposal[] => {
    if (to === undefined) return [];
    const start = text.indexOf(operator, left.end);
    const edit = { start, end: start + operator.length, replacement: to };
    return [{ operator: name, shown: node, edit }];
  };
  if (node.type === "LogicalExpression") return swap(logic.get(operator), "logic");
  if (node.type === "AssignmentExpression")
    return swap(operator === "+=" ? "-=" : operator === "-=" ? "+=" : undefined, "arithmetic");
  if (node.type !== "BinaryExpression") return [];
  const isText = [left, right].some(
    (side) => side.type === "TemplateLiteral" || typeof side["value"] === "string",
  );
  return [
    ...swap(boundaries.get(operator), "boundary"),
    ...swap(equalities.get(operator), "negate"),
    ...(isText ? [] : swap(sums.get(operator), "arithmetic")),
  ];
}

function conditions({ node, text }: Place): readonly Proposal[] {
  if (node.type !== "IfStatement" && node.type !== "ConditionalExpression") return [];
  const test = child(node, "test");
  if (test === undefined) return [];
  const whole = text.slice(test.start, test.end);
  const edit = (replacement: string): Edit => ({ start: test.start, end: test.end, replacement });
  const found: Proposal[] = [];
  // The turned equality says the same as the negated condition.
  if (!(test.type === "BinaryExpression" && equalities.has(textOf(test, "operator") ?? "")))
    found.push({
      operator: "negate",
      shown: test,
      edit: edit(
        test.type === "UnaryExpression" && whole.startsWith("!") ? whole.slice(1) : `!(${whole})`,
      ),
    });
  if (node.type === "IfStatement" && leaves(child(node, "consequent")))
    found.push({ operator: "guard", shown: test, edit: edit("false") });
  return found;
}

/** Whether a branch does nothing but leave. */
function leaves(branch: Node | undefined): boolean {
  if (branch?.type === "BlockStatement") {
    const [first, second] = list(branch, "body");
    return second === undefined && leaves(first);
  }
  return branch !== undefined && /^(?:Return|Throw|Continue|Break)Statement$/.test(branch.type);
}

function literals({ node, parents }: Place): readonly Proposal[] {
  const value = node["value"];
  if (node.type !== "Literal") return [];
  const parent = parents.at(-1);
  const isKey = parent !== undefined && parent["key"] === node && parent["computed"] !== true;
  if (isKey) return [];
  const becomes = (replacement: string, operator: string): readonly Proposal[] => [
    { operator, shown: node, edit: { start: node.start, end: node.end, replacement } },
  ];
  if (typeof value === "boolean") return becomes(String(!value), "boolean");
  if (typeof value !== "number") return [];
  return value < boundMin && Number.isInteger(value)
    ? becomes(String(value + 1), "number")
    : becomes(String(value * 1_000), "bound");
}

function removals(place: Place): readonly Proposal[] {
  const { node, parents, text } = place;
  const expression = child(node, "expression");
  if (node.type !== "ExpressionStatement" || expression === undefined) return [];
  if (typeof node["directive"] === "string") return [];
  const found: Proposal[] = [];
  const bare = expression.type === "AwaitExpression" ? child(expression, "argument") : expression;
  if (bare === undefined) return [];
  if (isLogging({ ...place, node: bare })) return [];
  const isCall = bare.type === "CallExpression" && child(bare, "callee")?.type !== "Super";
  const inConstructor = parents.some(
    (parent) => parent.type === "MethodDefinition" && parent["kind"] === "constructor",
  );
  // What a constructor keeps is missed by the compiler, and by everybody.
  const isChange =
    bare.type === "UpdateExpression" ||
    (bare.type === "UnaryExpression" && textOf(bare, "operator") === "delete") ||
    (bare.type === "AssignmentExpression" && !inConstructor);
  if (isCall || isChange)
    found.push({
      operator: "remove",
      shown: node,
      edit: { start: node.start, end: node.end, replacement: ";" },
    });
  if (expression !== bare)
    found.push({
      operator: "await",
      shown: node,
      edit: {
        start: node.start,
        end: node.end,
        replacement: `void ${text.slice(bare.start, bare.end)};`,
      },
      isTyped: false,
    });
  return found;
}

/** `db.transaction(A).immediate()`, `db.transaction(A)()` and Kysely's `db.transaction()…execute(A)`: the same without one. */
function transactions({ node, text }: Place): readonly Proposal[] {
  if (node.type !== "CallExpression") return [];
  const cut = (part: Node): string => text.slice(part.start, part.end);
  const without = (replacement: string): readonly Proposal[] => [
    {
      operator: "transaction",
      shown: node,
      edit: { start: node.start, end: node.end, replacement },
      isTyped: false,
    },
  ];
  const callee = child(node, "callee");
  const called = calledMember(node);
  const [action] = list(node, "arguments");
  const opener = called?.name === "immediate" ? called.object : callee;
  if (opener !== undefined && calledMember(opener)?.name === "transaction") {
    const [body] = list(opener, "arguments");
    const args = list(node, "arguments").map(cut).join(", ");
    return body === undefined ? [] : without(`(${cut(body)})(${args})`);
  }
  if (called?.name !== "execute" || action === undefined) return [];
  for (let at = calledMember(called.object); at !== undefined; at = calledMember(at.object))
    if (at.name === "transaction") return without(`(${cut(action)})(${cut(at.object)})`);
  return [];
}

function callNames({ node, text }: Place): readonly Proposal[] {
  const called = calledMember(node);
  if (called === undefined) return [];
  const found: Proposal[] = [];
  const to = calls.get(called.name);
  const property = child(child(node, "callee") ?? node, "property");
  if (to !== undefined && property !== undefined)
    found.push({
      operator: "call",
      shown: node,
      edit: { start: property.start, end: property.end, replacement: to },
    });
  if (passing.has(called.name))
    found.push({
      operator: "pass",
      shown: node,
      edit: {
        start: node.start,
        end: node.end,
        replacement: text.slice(called.object.start, called.object.end),
      },
    });
  return found;
}

const statement = /\b(?:SELECT|UPDATE|DELETE|INSERT)\b/;
const sqlWords = / (<=|>=|<|>|AND|OR|DESC) /g;
const sqlSwaps = new Map([...boundaries, ...swaps({ AND: "OR", OR: "AND", DESC: "ASC" })]);

/** In the text of a statement, and in the operators that a query builder takes as text. */
function sql({ node, parents, text }: Place): readonly Proposal[] {
  const isWhole = node.type === "TemplateElement" || typeof node["value"] === "string";
  if (!isWhole) return [];
  const source = text.slice(node.start, node.end);
  const operator = "sql";
  if (statement.test(source))
    return [...source.matchAll(sqlWords)].map((match) => {
      const start = node.start + match.index + 1;
      const word = match[1] ?? "";
      const edit = { start, end: start + word.length, replacement: sqlSwaps.get(word) ?? word };
      return { operator, shown: node, edit };
    });
  const parent = parents.at(-1);
  const value = String(node["value"]);
  const swapped =
    boundaries.get(value) ?? (value === "desc" ? "asc" : value === "asc" ? "desc" : undefined);
  if (parent?.type !== "CallExpression" || swapped === undefined) return [];
  const edit = { start: node.start, end: node.end, replacement: JSON.stringify(swapped) };
  return [{ operator, shown: parent, edit }];
}
