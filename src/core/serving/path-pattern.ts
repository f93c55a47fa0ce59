// Path patterns of devlove and name patterns of query rules, matched in bounded time.
//
// Path pattern: `*` is any run of characters within a segment, `**` any run at all, slashes included; either
// may be empty. `/**/` also stands for one `/`, so that `/a/**/b` matches `/a/b`. Everything else is literal
// and case-sensitive; `/img/**` does not match `/img`. Name pattern: `*` is any run of characters.
//
// Both sides are compared in one form, as bytes (one character a byte): the form that an origin or a file
// look-up makes of the text, so that `/%61ccount` cannot slip past a rule for `/account/**`. See
// canonicalPath and canonicalName.
//
// A pattern compiles to a literal prefix, a literal suffix and the tokens between. The tokens are run as a
// bit-parallel automaton: one pass over the text, with at most pathPatternCharsMax / 32 words of work a
// character, whatever the pattern. It needs no backtracking and no regular expression.

/**
 * The longest pattern. It takes 16 words a character: 8 KiB of path under the worst pattern take half a
 * millisecond.
 */
export const pathPatternCharsMax = 512;

export type TextMatcher = {
  /** The only text that it matches, canonical, if it has no wildcard. */
  readonly literal: string | undefined;
  /** `text` must be in canonical form. Never throws. */
  readonly matches: (text: string) => boolean;
};

/**
 * A character code, or a wildcard. "star" is any run within a segment, "globstar" any run, "segments" zero or
 * more whole segments, each with its slash.
 */
type Token = number | "star" | "globstar" | "segments";

const slash = 47;

/** Says what is wrong with a path pattern, or returns undefined. */
export function pathPatternFault(pattern: string): string | undefined {
  if (pattern.length > pathPatternCharsMax)
    return `is longer than ${pathPatternCharsMax} characters`;
  if (!/^[/*]/.test(pattern)) return "must start with `/` or `*`";
  if (pattern.includes("***"))
    return "has three stars in a row: `*` stays within a segment, `**` crosses segments";
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused.
  if (/[?#\s\x00-\x1f\x7f]/.test(pattern))
    return "must be a path: no `?`, `#`, blank or control character (encode them as %XX)";
  if (/(?:^|\/)\.{1,2}(?:\/|$)/.test(pattern))
    return "must not contain `.` or `..` segments: paths are matched after these are resolved";
  return undefined;
}

/**
 * Says what is wrong with a pattern for cookies, or returns undefined: a name, or `name=value`. Names are
 * tokens (RFC 6265 §4.1.1), which may hold `*`, as values may; here it is always a wildcard.
 */
export function cookiePatternFault(pattern: string): string | undefined {
  if (pattern === "") return "must not be empty";
  if (pattern.length > pathPatternCharsMax)
    return `is longer than ${pathPatternCharsMax} characters`;
  const equals = pattern.indexOf("=");
  const name = equals < 0 ? pattern : pattern.slice(0, equals);
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
    return "is no name of a cookie: letters, digits and !#$%&'*+.^_`|~- only (RFC 6265 §4.1.1), `*` for any run of them";
  const value = pattern.slice(name.length + 1);
  return /^[!#-+\x2d-:<-[\]-~]*$/.test(value)
    ? undefined
    : 'has a value that no cookie is compared with: visible ASCII only, without blank, `"`, `,`, `;` and `\\` (RFC 6265 §4.1.1)';
}

/** Says what is wrong with a pattern for names of query parameters, or returns undefined. */
export function namePatternFault(pattern: string): string | undefined {
  if (pattern === "") return "must not be empty";
  if (pattern.length > pathPatternCharsMax)
    return `is longer than ${pathPatternCharsMax} characters`;
  if (/[&=#]/.test(pattern)) return "is matched with the name of a parameter: no `&`, `=` or `#`";
  return undefined;
}

/** Compiles a pattern for paths in canonicalPath's form. */
export function compilePathPattern(pattern: string): TextMatcher {
  const tokens: Token[] = [];
  for (const part of asEscapes(pattern).split(/(\*+\/?|\/+)/)) {
    if (part === "") continue;
    if (part.startsWith("/")) {
      // Slashes are merged as canonicalPath merges them.
      if (tokens.at(-1) !== slash && tokens.at(-1) !== "segments") tokens.push(slash);
    } else if (part.startsWith("*")) pushWildcard(tokens, part);
    else pushText(tokens, decodeBytes(part, pathKept));
  }
  return compileTokens(tokens);
}

function pushWildcard(tokens: Token[], part: string): void {
  const before = tokens.at(-1);
  const withSlash = part.endsWith("/");
  if (part.startsWith("**") && withSlash && (before === slash || before === "segments")) {
    if (before === slash) tokens.push("segments");
    return;
  }
  tokens.push(part.startsWith("**") ? "globstar" : "star");
  if (withSlash) tokens.push(slash);
}

/** Compiles a pattern for names in canonicalName's form. */
export function compileNamePattern(pattern: string): TextMatcher {
  const tokens: Token[] = [];
  for (const part of asEscapes(pattern).split(/(\*+)/)) {
    if (part.startsWith("*")) tokens.push("globstar");
    else pushText(tokens, canonicalName(part));
  }
  return compileTokens(tokens);
}

/** Compiles a pattern in which `*` is any run of characters, for texts as they are. */
export function compileTextPattern(pattern: string): TextMatcher {
  const tokens: Token[] = [];
  for (const part of pattern.split(/(\*+)/)) {
    if (part.startsWith("*")) tokens.push("globstar");
    else pushText(tokens, part);
  }
  return compileTokens(tokens);
}

function pushText(tokens: Token[], text: string): void {
  for (let at = 0; at < text.length; at++) tokens.push(text.charCodeAt(at));
}

/** These two stay encoded: an encoded slash is no slash, and an encoded percent sign begins no escape. */
const pathKept: ReadonlySet<string> = new Set(["2F", "25"]);
const nothingKept: ReadonlySet<string> = new Set();

/**
 * Returns the form in which paths are matched: percent-decoded once except for `%2F` and `%25`, slashes
 * merged, `.` and `..` resolved. `rawPath` is as received, with bytes beyond ASCII one character each. The
 * result is only for matching: it is neither forwarded nor a file name.
 */
export function canonicalPath(rawPath: string): string {
  if (!/%|\/\/|\/\./.test(rawPath)) return rawPath;
  return resolvedPath(decodeBytes(rawPath, pathKept));
}

/** Merges slashes and resolves `.` and `..`. */
export function resolvedPath(path: string): string {
  const segments: string[] = [];
  let directory = false;
  for (const segment of path.split("/")) {
    directory = segment === "" || segment === "." || segment === "..";
    if (segment === "..") segments.pop();
    else if (!directory) segments.push(segment);
  }
  return `/${segments.join("/")}${directory && segments.length > 0 ? "/" : ""}`;
}

/** Returns the form in which names of query parameters are matched: percent-decoded, with `+` as a space. */
export function canonicalName(rawName: string): string {
  return /[%+]/.test(rawName) ? decodeBytes(rawName.replaceAll("+", " "), nothingKept) : rawName;
}

function decodeBytes(text: string, kept: ReadonlySet<string>): string {
  return text.replaceAll(/%([0-9A-Fa-f]{2})/g, (escape: string, digits: string) => {
    return kept.has(digits.toUpperCase())
      ? escape.toUpperCase()
      : String.fromCharCode(Number.parseInt(digits, 16));
  });
}

/**
 * Writes characters beyond ASCII as the escapes of their UTF-8 bytes: a pattern is Unicode text, a request is
 * bytes.
 */
function asEscapes(pattern: string): string {
  return pattern.replaceAll(/[^\p{ASCII}]+/gu, (text) => encodeURIComponent(text.toWellFormed()));
}

function compileTokens(tokens: readonly Token[]): TextMatcher {
  const isWild = (token: Token): boolean => typeof token === "string";
  const first = tokens.findIndex(isWild);
  if (first < 0) {
    const literal = literalText(tokens);
    return { literal, matches: (text) => text === literal };
  }
  const last = tokens.findLastIndex(isWild);
  const prefix = literalText(tokens.slice(0, first));
  const suffix = literalText(tokens.slice(last + 1));
  const middle = compileMiddle(tokens.slice(first, last + 1));
  const matches = (text: string): boolean =>
    text.length >= prefix.length + suffix.length &&
    text.startsWith(prefix) &&
    text.endsWith(suffix) &&
    middle(text, prefix.length, text.length - suffix.length);
  return { literal: undefined, matches };
}

function literalText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => (typeof token === "number" ? String.fromCharCode(token) : ""))
    .join("");
}

type RangeMatcher = (text: string, from: number, to: number) => boolean;

function compileMiddle(tokens: readonly Token[]): RangeMatcher {
  if (tokens.length > 1) {
    const program = compileProgram(tokens);
    return (text, from, to) => run(program, text, from, to);
  }
  if (tokens[0] === "globstar") return () => true;
  // The pattern ends with the slash before it, and nothing has to follow.
  if (tokens[0] === "segments") return (text, _from, to) => text.charCodeAt(to - 1) === slash;
  return (text, from, to) => {
    const at = text.indexOf("/", from);
    return at < 0 || at >= to;
  };
}

/** State i (bit i) stands before token i; the last state accepts. */
type Program = {
  readonly accept: number;
  /** Maps a character to the states that it moves to the next one. */
  readonly moves: ReadonlyMap<number, Int32Array>;
  readonly none: Int32Array;
  /**
   * `stayAny` has the states that outlive any character, `stayInSegment` those that outlive any but a slash.
   */
  readonly stayAny: Int32Array;
  readonly stayInSegment: Int32Array;
  /**
   * `passable` has the states that may be skipped at any time (`*`, `**`), `enterable` those that may be
   * skipped only on arrival (`/**` + `/`).
   */
  readonly passable: Int32Array;
  readonly enterable: Int32Array;
};

function compileProgram(tokens: readonly Token[]): Program {
  const words = (tokens.length >>> 5) + 1;
  const moves = new Map<number, Int32Array>();
  const bits = (): Int32Array => new Int32Array(words);
  const program = {
    accept: tokens.length,
    moves,
    none: bits(),
    stayAny: bits(),
    stayInSegment: bits(),
    passable: bits(),
    enterable: bits(),
  };
  for (const [state, token] of tokens.entries()) {
    if (typeof token === "number" || token === "segments") {
      const code = token === "segments" ? slash : token;
      const moved = moves.get(code) ?? bits();
      moves.set(code, moved);
      setBit(moved, state);
    }
    if (typeof token === "number") continue;
    setBit(program.stayInSegment, state);
    if (token !== "star") setBit(program.stayAny, state);
    setBit(token === "segments" ? program.enterable : program.passable, state);
  }
  return program;
}

function setBit(set: Int32Array, bit: number): void {
  set[bit >>> 5] = (set[bit >>> 5] ?? 0) | (1 << (bit & 31));
}

function run(program: Program, text: string, from: number, to: number): boolean {
  const now = new Int32Array(program.stayAny.length);
  step(program, now, program.none, program.stayAny, 1);
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    const stay = code === slash ? program.stayAny : program.stayInSegment;
    if (!step(program, now, program.moves.get(code) ?? program.none, stay, 0)) return false;
  }
  return ((now[program.accept >>> 5] ?? 0) & (1 << (program.accept & 31))) !== 0;
}

/**
 * Runs one character or, with `starting` = 1, the arrival in state 0. Carries only go upwards, so one pass is
 * enough. Returns false if no state is left.
 */
function step(
  program: Program,
  now: Int32Array,
  moves: Int32Array,
  stay: Int32Array,
  starting: 0 | 1,
): boolean {
  let movedCarry: number = starting;
  let enteredCarry = 0;
  let passedCarry = 0;
  let alive = 0;
  for (let word = 0; word < now.length; word++) {
    const here = now[word] ?? 0;
    const moved = here & (moves[word] ?? 0);
    const arrived = (moved << 1) | movedCarry;
    const entered = arrived & (program.enterable[word] ?? 0);
    const held = (here & (stay[word] ?? 0)) | arrived | (entered << 1) | enteredCarry;
    const passed = held & (program.passable[word] ?? 0);
    const next = held | (passed << 1) | passedCarry;
    movedCarry = moved >>> 31;
    enteredCarry = entered >>> 31;
    passedCarry = passed >>> 31;
    now[word] = next;
    alive |= next;
  }
  return alive !== 0;
}
