// What the cookies of a request mean for caches. A rule names cookies of four kinds, asked in this order:
//
//   bypass    the request is passed on, and the cache has no part in it
//   vary      the answer depends on the cookie: the origin is told it, and each value has an entry of its own
//   ignored   named by the rule, or on the published list: the origin is not told it
//   own       every other cookie is its visitor's own
//
// An item of a rule is a name, or a name and a value (`lang=de`); `*` stands for any run of characters.
//
// The cookies are read so that no server finds one that was not seen here. A piece between semicolons is a
// cookie (RFC 6265 §5.4). Some servers also end one at a comma (RFC 2109), others do not end one at a
// semicolon within quotes, so everything that any of them takes for a name is judged. A piece without `=`,
// without a name, or with a name that RFC 6265 does not allow counts as the visitor's own too.
//
// What a value is, servers agree on only where it is plain: the characters that RFC 6265 allows, no quotes.
// Where a value counts and is not plain, nobody is given another's answer: the request is passed on.

import type { CookieRule } from "../serving/effective-devlove.ts";
import { fieldValues, type Field } from "./http-fields.ts";
import { isListedCookie } from "./listed-cookies.ts";
import { compileTextPattern, type TextMatcher } from "../serving/path-pattern.ts";

export type CookieUse =
  | { readonly kind: "none" }
  /** Whatever the cookies say, the answer is the same: the origin is asked without them. */
  | { readonly kind: "ignored" }
  /**
   * The answer depends on some of the cookies, and on no others. `told` is the Cookie field that the origin is
   * asked with: the same cookies in any order, beside any others, are told in the same words.
   */
  | { readonly kind: "vary"; readonly told: string }
  /** `name` is that of the first cookie that is not ignored, undefined if it has no readable one. */
  | { readonly kind: "own"; readonly name: string | undefined }
  /** The rule passes requests with this cookie on, or with text that may hide one. */
  | { readonly kind: "bypass"; readonly name: string | undefined };

/**
 * Takes fields as received: there may be several, and HTTP/2 brings one in pieces. The answer is remembered
 * for a list of fields, which must not be changed afterwards.
 */
export type CookieJudge = (fields: readonly Field[]) => CookieUse;

const none: CookieUse = { kind: "none" };
const ignored: CookieUse = { kind: "ignored" };

/** The fields that are left out of a request whose answer others get. Cookie2 is RFC 2965's, and obsolete. */
export const cookieFields: ReadonlySet<string> = new Set(["cookie", "cookie2"]);

/** The most characters of all that is told, and of a value that is compared. Longer ones count as not plain. */
export const toldCharsMax = 512;

/**
 * Returns what an origin is told where others may get its answer, "" for nothing; undefined where its visitor
 * is asked for alone.
 */
export function toldToShare(use: CookieUse): string | undefined {
  switch (use.kind) {
    case "none":
    case "ignored":
      return "";
    case "vary":
      return use.told;
    case "own":
    case "bypass":
      return undefined;
    default:
      return use satisfies never;
  }
}

/** Returns whether under this rule each value of some cookies has an entry of its own. */
export function variesByRule({ vary }: Pick<CookieRule, "vary">): boolean {
  return vary.length > 0;
}

/** Compiles a rule: what it names counts beside the published list, which is always ignored. */
export function compileCookieRule(rule: CookieRule): CookieJudge {
  const { bypass, vary, ignore } = rule;
  const hasBypass = bypass.length > 0;
  if (!hasBypass && vary.length === 0 && ignore.includes("*"))
    return (fields) => (hasCookie(fields) ? ignored : none);
  const stepsOf = remembering(judging(rule));
  // A request is asked about several times, and a visitor's connection often has the same fields for many.
  const known = new WeakMap<readonly Field[], CookieUse>();
  return (fields) => {
    const before = known.get(fields);
    if (before !== undefined) return before;
    if (!hasCookie(fields)) return none;
    const reading = new Reading(stepsOf, hasBypass);
    for (const field of fields) if (isCookie(field) && reading.take(field[1]) === "decided") break;
    known.set(fields, reading.use);
    return reading.use;
  };
}

function hasCookie(fields: readonly Field[]): boolean {
  for (const field of fields) if (isCookie(field)) return true;
  return false;
}

/** Returns whether a response sets a cookie that the rule varies by, whatever its value. */
export function setsVaryCookie(
  fields: readonly Field[],
  { vary }: Pick<CookieRule, "vary">,
): boolean {
  if (vary.length === 0) return false;
  const matchers = vary.map((item) => partsOf(item).name);
  return fieldValues(fields, "set-cookie").some((line) =>
    // Lines that something on the way has joined are read apart.
    line.split(",").some((piece) => {
      const [pair = ""] = piece.split(";", 1);
      const [name = ""] = pair.split("=", 1);
      return matchers.some((matcher) => matcher.matches(trimmed(name, 0, name.length)));
    }),
  );
}

type Verdict = "bypass" | "vary" | "ignored" | "own";

/** What a cookie is if it has this value. The last step of a name holds for every value. */
type Step = { readonly verdict: Verdict; readonly value: TextMatcher | undefined };

const ownStep: Step = { verdict: "own", value: undefined };
const ignoredStep: Step = { verdict: "ignored", value: undefined };

/** Returns the steps for a name that RFC 6265 allows; undefined for another. */
type StepsOf = (name: string) => readonly Step[] | undefined;

/** An item of a rule. Nothing behind its first `=` belongs to the name. */
function partsOf(item: string): {
  readonly name: TextMatcher;
  readonly value: TextMatcher | undefined;
} {
  const equals = item.indexOf("=");
  if (equals < 0) return { name: compileTextPattern(item), value: undefined };
  return {
    name: compileTextPattern(item.slice(0, equals)),
    value: compileTextPattern(item.slice(equals + 1)),
  };
}

function judging({ bypass, vary, ignore }: CookieRule): (name: string) => readonly Step[] {
  const rowsOf = (verdict: Verdict, items: readonly string[]) =>
    items.map((item) => ({ verdict, ...partsOf(item) }));
  const rows = [...rowsOf("bypass", bypass), ...rowsOf("vary", vary), ...rowsOf("ignored", ignore)];
  return (name) => {
    const steps = rows.filter((row) => row.name.matches(name));
    const last = steps.findIndex(({ value }) => value === undefined);
    return last < 0
      ? [...steps, isListedCookie(name) ? ignoredStep : ownStep]
      : steps.slice(0, last + 1);
  };
}

/** The most names remembered, because the same come with each request; at 100 bytes each, 50 KiB. */
const namesMax = 512;
const nameCharsKept = 100;

/** Remembers the steps of each name. Only names that RFC 6265 allows have any. */
function remembering(judge: (name: string) => readonly Step[]): StepsOf {
  const known = new Map<string, readonly Step[] | undefined>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined || known.has(name)) return before;
    const steps = isToken.test(name) ? judge(name) : undefined;
    if (name.length > nameCharsKept) return steps;
    if (known.size >= namesMax) known.clear();
    known.set(name, steps);
    return steps;
  };
}

/** Returns whether a cookie of this name is ignored, under these patterns or by the published list. */
export function ignoring(patterns: readonly string[]): (name: string) => boolean {
  const matchers = patterns.map(compileTextPattern);
  return (name) => isListedCookie(name) || matchers.some((matcher) => matcher.matches(name));
}

function isCookie([name]: Field): boolean {
  // Nearly every head has an Accept, which is as long: its first letter tells it apart.
  return (
    name.length === 6 && (name.charCodeAt(0) | 0x20) === letterC && name.toLowerCase() === "cookie"
  );
}

const letterC = 99;
const semicolon = 59;
const comma = 44;
const equalsSign = 61;

/** What stands between two cookies (RFC 6265 §4.2.1). */
const between = "; ";

/** The cookies of one request, read one after another. */
class Reading {
  readonly #stepsOf: StepsOf;
  /** A cookie that bypasses may come behind one that is its visitor's own. */
  readonly #hasBypass: boolean;
  #decided: CookieUse | undefined;
  /** The first that is its visitor's own. */
  #own: CookieUse | undefined;
  /** The values of names that the rule varies by. */
  #values: Map<string, string> | undefined;
  #told: Set<string> | undefined;
  #toldChars = 0;

  constructor(stepsOf: StepsOf, hasBypass: boolean) {
    this.#stepsOf = stepsOf;
    this.#hasBypass = hasBypass;
  }

  get use(): CookieUse {
    const decided = this.#decided ?? this.#own;
    if (decided !== undefined) return decided;
    if (this.#told === undefined) return ignored;
    return { kind: "vary", told: [...this.#told].toSorted().join(between) };
  }

  /** Each character is looked at once, because visitors choose what stands here. */
  take(field: string): "decided" | "go-on" {
    let from = 0;
    let equals = -1;
    let isBehindComma = false;
    for (let at = 0; at <= field.length; at++) {
      const code = at === field.length ? semicolon : field.charCodeAt(at);
      if (code === equalsSign && equals < 0) equals = at;
      if (code !== semicolon && code !== comma) continue;
      if (equals >= 0) {
        const isWhole = code === semicolon && !isBehindComma;
        this.#judge(trimmed(field, from, equals), isWhole ? [equals + 1, at] : undefined, field);
      } else if (!isBehindComma && (code === comma || trimmed(field, from, at) !== ""))
        this.#takeOdd();
      if (this.#decided !== undefined) return "decided";
      // Behind a comma, a piece without `=` is part of a value to everybody.
      isBehindComma = code === comma;
      from = at + 1;
      equals = -1;
    }
    return "go-on";
  }

  /** `place` is where its value stands; undefined where a comma makes it doubtful which that is. */
  #judge(
    name: string,
    place: readonly [from: number, to: number] | undefined,
    field: string,
  ): void {
    const steps = this.#stepsOf(name);
    if (steps === undefined) {
      this.#takeOdd();
      return;
    }
    const [first = ownStep] = steps;
    if (first.value === undefined && first.verdict !== "vary") {
      this.#take(first.verdict, name);
      return;
    }
    const value = place === undefined ? undefined : plainValue(field, place);
    if (value === undefined) {
      this.#take(first.verdict === "bypass" ? "bypass" : "own", name);
      return;
    }
    const step = steps.find((one) => one.value === undefined || one.value.matches(value));
    const verdict = step?.verdict ?? "own";
    const isClear = verdict === "bypass" || !mayVary(steps) || this.#isOnlyValue(name, value);
    this.#take(isClear ? verdict : "own", name, value);
  }

  /** Servers differ in which of two values they take. */
  #isOnlyValue(name: string, value: string): boolean {
    this.#values ??= new Map();
    const before = this.#values.get(name);
    this.#values.set(name, value);
    return before === undefined || before === value;
  }

  #take(verdict: Verdict, name: string, value = ""): void {
    switch (verdict) {
      case "ignored":
        return;
      case "vary":
        this.#tell(name, value);
        return;
      case "own":
        this.#takeOwn(name);
        return;
      case "bypass":
        this.#decided = { kind: "bypass", name };
        return;
      default:
        verdict satisfies never;
    }
  }

  #tell(name: string, value: string): void {
    const pair = `${name}=${value}`;
    this.#told ??= new Set();
    if (this.#told.has(pair)) return;
    this.#toldChars += pair.length + between.length;
    if (this.#toldChars > toldCharsMax) this.#takeOwn(name);
    else this.#told.add(pair);
  }

  #takeOwn(name: string | undefined): void {
    this.#own ??= { kind: "own", name };
    if (!this.#hasBypass) this.#decided = this.#own;
  }

  /** Takes text that some server may read as a cookie, nobody knows as which. */
  #takeOdd(): void {
    if (this.#hasBypass) this.#decided = { kind: "bypass", name: undefined };
    else this.#takeOwn(undefined);
  }
}

function mayVary(steps: readonly Step[]): boolean {
  return steps.some(({ verdict }) => verdict === "vary");
}

/** A token of RFC 9110 §5.6.2. */
const isToken = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Trims blanks and tabs, as RFC 6265 does; to some servers other white space is a part of the name. */
function trimmed(text: string, from: number, to: number): string {
  let [first, end] = [from, to];
  while (first < end && isBlank(text.charCodeAt(first))) first++;
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(first, end);
}

/** The cookie-octets of RFC 6265 §4.1.1, of which no value in quotes is made. */
const isPlainValue = /^[!#-+\x2d-:<-[\]-~]*$/;

/** Returns the value that stands there; undefined for one that servers may read differently, or a long one. */
function plainValue(
  field: string,
  [from, to]: readonly [from: number, to: number],
): string | undefined {
  const value = trimmed(field, from, to);
  return value.length <= toldCharsMax && isPlainValue.test(value) ? value : undefined;
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}
