// Clear patterns by the seed: grown from FTS5's grammar, the same with slips, and noise; and what our validator and FTS5 say of each.

import type { PatternCheck } from "../../src/base/pattern-check.ts";
import { indexColumns, normalPattern } from "../../src/core/patterns/index-schema.ts";
import { judgePattern } from "../../src/core/patterns/pattern-fault.ts";
import { parsePattern } from "../../src/core/patterns/pattern-grammar.ts";

export type FuzzCounts = {
  agreedAccepts: number;
  agreedRefusals: number;
  /** Of the agreed accepts: what nothing can match or what asks for too much, refused by our own rules. */
  unwanted: number;
  /** Too deep for our parser, and a NUL, behind which FTS5 does not read: FTS5 is not asked. */
  notCompared: number;
  /** Each is a defect: the pattern and who refused it. */
  readonly disagreements: string[];
};

type Random = (below: number) => number;

/** mulberry32. */
function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export function fuzzPatterns(count: number, seed: number, patterns: PatternCheck): FuzzCounts {
  const counts: FuzzCounts = {
    agreedAccepts: 0,
    agreedRefusals: 0,
    unwanted: 0,
    notCompared: 0,
    disagreements: [],
  };
  const random = randomOf(seed);
  for (let i = 0; i < count; i++) {
    const pattern = normalPattern(generated(random));
    const ours = parsePattern(pattern);
    if (ours.kind === "deep" || pattern.includes("\0")) {
      counts.notCompared++;
      continue;
    }
    const theirs = patterns.refusedByFts5(pattern);
    if ((ours.kind === "valid") !== (theirs === undefined))
      counts.disagreements.push(
        `${JSON.stringify(pattern)}: ours ${ours.kind === "valid" ? "takes it" : ours.flaw.message}; FTS5 ${theirs ?? "takes it"}`,
      );
    else if (ours.kind === "invalid") counts.agreedRefusals++;
    else {
      counts.agreedAccepts++;
      if (judgePattern(pattern).kind === "unwanted") counts.unwanted++;
    }
  }
  return counts;
}

function generated(random: Random): string {
  const kind = random(10);
  if (kind === 0) return noise(random);
  const valid = expression(random, random(16) === 0 ? random(20) : 3);
  return kind < 6 ? valid : mutated(valid, random);
}

const pick = <T>(random: Random, choices: readonly [T, ...T[]]): T =>
  choices[random(choices.length)] ?? choices[0];

const space = (random: Random): string =>
  pick(random, [" ", " ", " ", "", "  ", "\t", "\n", "\r\n"]);

/** One operand of each level goes deeper for sure while many levels are left, so that deep patterns stay short. */
function expression(random: Random, depth: number): string {
  const deep = depth > 3;
  const operands = 1 + random(3);
  const nested = random(operands);
  let text = "";
  for (let i = 0; i < operands; i++) {
    const operator = i === 0 ? "" : ` ${pick(random, ["AND", "OR", "NOT"])} `;
    const isNested = deep ? i === nested : depth > 0 && random(3) === 0;
    text += `${operator}${operand(random, isNested ? depth - 1 : undefined)}`;
  }
  return text;
}

function operand(random: Random, depth: number | undefined): string {
  const filter = random(3) === 0 ? `${columns(random)}${space(random)}:${space(random)}` : "";
  if (depth !== undefined)
    return `${filter}(${space(random)}${expression(random, depth)}${space(random)})`;
  const more = random(4) === 0 ? ` ${near(random)}` : "";
  return `${filter}${near(random)}${more}`;
}

function columns(random: Random): string {
  const name = (): string => {
    const plain = random(30) === 0 ? "pth" : pick(random, ["path", ...indexColumns]);
    return pick(random, [plain, plain, plain, `"${plain}"`, plain.toUpperCase()]);
  };
  const list = `{${Array.from({ length: 1 + random(3) }, name).join(" ")}}`;
  return `${random(4) === 0 ? `-${space(random)}` : ""}${random(3) === 0 ? list : name()}`;
}

function near(random: Random): string {
  if (random(6) > 0) return `${random(5) === 0 ? "^" : ""}${phrase(random)}`;
  const phrases = Array.from({ length: 1 + random(3) }, () => phrase(random)).join(" ");
  const distance = random(2) === 0 ? "" : `,${space(random)}${pick(random, ["5", "007", "99"])}`;
  return `NEAR${space(random)}(${phrases}${distance})`;
}

function phrase(random: Random): string {
  const term = (): string => `${string(random)}${random(5) === 0 ? `${space(random)}*` : ""}`;
  return random(5) === 0 ? `${term()}${space(random)}+${space(random)}${term()}` : term();
}

function string(random: Random): string {
  return pick(random, [
    "blog",
    "html",
    "z2fblog",
    "NEAR",
    "and",
    "_x1",
    "路径",
    "cafe\u0301",
    "\u00a0x",
    '"blog post"',
    '"image/png"',
    '"say ""a1"""',
    '"a AND b"',
    '"(x"',
    "\u001ab2",
    "generated",
  ]);
}

const slips = [
  ...Array.from("(){}:,+*-^\"'/.?=&%#!|;<>[]\\~@$`"),
  ...Array.from(" \t\n\v\f\u00a0\u2028\u037e\u0338"),
  "AND",
  "OR",
  "NOT",
  "NEAR",
  "NEAR(",
  "path:",
  "-",
  "{path mime}:",
  "x",
  "é",
  "0",
  "()",
  '""',
  "\ud83d\ude00",
  "\ud800",
  "\u0301",
  "\u001a",
  "\u0001",
  "\u007f",
  " NOT NOT ",
  " AND OR ",
];

function mutated(pattern: string, random: Random): string {
  let text = pattern;
  for (let n = 1 + random(3); n > 0; n--) {
    const at = random(text.length + 1);
    const slip = slips[random(slips.length)] ?? "";
    const until = at + random(3);
    const kind = random(4);
    if (kind === 0) text = text.slice(0, at) + text.slice(until);
    else if (kind === 1) text = text.slice(0, at) + slip + text.slice(at);
    else if (kind === 2) text = text.slice(0, at) + slip + text.slice(until);
    else text = text.slice(0, at) + text.slice(at + 1, until) + text.slice(at);
  }
  return text;
}

function noise(random: Random): string {
  const length = random(24);
  let text = "";
  for (let i = 0; i < length; i++)
    text +=
      random(3) === 0
        ? String.fromCharCode(1 + random(random(4) === 0 ? 0xfffe : 0x7e))
        : (slips[random(slips.length)] ?? "");
  return text;
}
