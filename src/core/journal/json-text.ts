// JSON text (RFC 8259) read strictly: the first fault with line and column, and names that an object gives twice.
//
// JSON.parse makes the value. The scan before it only finds what JSON.parse does not tell: where a fault is (its message often has no
// position) and repeated names (it silently takes the last). Depth is limited, so hostile nesting ends as a fault, not as a stack.

export type JsonPath = readonly (string | number)[];
/** Both count from 1; the column counts UTF-16 units. */
export type JsonPlace = { readonly line: number; readonly column: number };
export type JsonFault = JsonPlace & { readonly message: string };
export type RepeatedName = JsonPlace & { readonly path: JsonPath };
export type JsonText =
  | { readonly ok: true; readonly value: unknown; readonly repeated: readonly RepeatedName[] }
  | { readonly ok: false; readonly fault: JsonFault };

type Limits = { readonly depthMax: number; readonly repeatedMax: number };

export function parseJsonText(text: string, limits: Limits): JsonText {
  const scan = new Scan(text, limits);
  const fault = scan.document();
  if (fault !== undefined) return { ok: false, fault: { message: fault, ...scan.place() } };
  return { ok: true, value: JSON.parse(text), repeated: scan.repeated };
}

/**
 * Returns whether a text nests deeper than `levelsMax`, without parsing it: to read back what is nested a
 * million times takes seconds, or overflows the stack.
 */
export function nestsDeeper(text: string, levelsMax: number): boolean {
  let levels = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) isString = !isString;
    else if (isString) at += code === 0x5c ? 1 : 0;
    else if (code === 0x5b || code === 0x7b) {
      if (++levels > levelsMax) return true;
    } else if (code === 0x5d || code === 0x7d) levels--;
  }
  return false;
}

/**
 * Reads the text in one pass. Every method returns the message of a fault at #at, or undefined with #at
 * behind what it read.
 */
class Scan {
  readonly #text: string;
  readonly #limits: Limits;
  readonly #number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
  readonly #word = /true|false|null/y;
  readonly #escape = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;
  readonly #path: (string | number)[] = [];
  readonly repeated: RepeatedName[] = [];
  #at = 0;
  #line = 1;
  #lineStart = 0;

  constructor(text: string, limits: Limits) {
    this.#text = text;
    this.#limits = limits;
  }

  document(): string | undefined {
    if (this.#text.startsWith("\uFEFF"))
      return "the document starts with a byte order mark: remove it";
    const fault = this.#value();
    if (fault !== undefined) return fault;
    return this.#at < this.#text.length
      ? `nothing may follow the document, found ${this.#found()}`
      : undefined;
  }

  #value(): string | undefined {
    this.#blanks();
    const fault = this.#bareValue();
    if (fault === undefined) this.#blanks();
    return fault;
  }

  #bareValue(): string | undefined {
    const char = this.#text[this.#at];
    if (char === "{") {
      const names = new Set<string>();
      return this.#list("}", () => this.#member(names));
    }
    if (char === "[") return this.#list("]", () => this.#item());
    if (char === '"') return this.#string();
    if (this.#take(this.#number) || this.#take(this.#word)) return undefined;
    return `expected a value, found ${this.#found()}`;
  }

  /** Reads what object and array have in common: brackets, commas, depth. */
  #list(close: "}" | "]", element: () => string | undefined): string | undefined {
    if (this.#path.length >= this.#limits.depthMax)
      return `nested deeper than ${this.#limits.depthMax} levels`;
    this.#at++;
    this.#blanks();
    if (this.#is(close)) return undefined;
    this.#path.push(0);
    for (;;) {
      const fault = element();
      if (fault !== undefined) return fault;
      if (this.#is(close)) {
        this.#path.pop();
        return undefined;
      }
      if (!this.#is(",")) return `expected \`,\` or \`${close}\`, found ${this.#found()}`;
      this.#blanks();
      if (this.#text[this.#at] === close)
        return `expected another element after the comma, found \`${close}\``;
    }
  }

  #item(): string | undefined {
    const fault = this.#value();
    const index = this.#path.at(-1);
    if (fault === undefined && typeof index === "number")
      this.#path[this.#path.length - 1] = index + 1;
    return fault;
  }

  #member(names: Set<string>): string | undefined {
    const start = this.#at;
    const place = this.place();
    if (this.#text[start] !== '"')
      return `expected a name in double quotes, found ${this.#found()}`;
    const fault = this.#string();
    if (fault !== undefined) return fault;
    const name = String(JSON.parse(this.#text.slice(start, this.#at)));
    this.#path[this.#path.length - 1] = name;
    if (names.has(name) && this.repeated.length < this.#limits.repeatedMax)
      this.repeated.push({ path: [...this.#path], ...place });
    names.add(name);
    this.#blanks();
    return this.#is(":") ? this.#value() : `expected \`:\` after the name, found ${this.#found()}`;
  }

  #string(): string | undefined {
    this.#at++;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (Number.isNaN(code)) return "the document ends within a string";
      if (code < 0x20) return `a string must not contain ${this.#found()}: write it as an escape`;
      if (code === 0x5c) {
        if (!this.#take(this.#escape)) return "unknown escape in a string";
      } else {
        this.#at++;
        if (code === 0x22) return undefined;
      }
    }
  }

  /** Skips blanks. Lines end only here, because a line feed within a string is a fault. */
  #blanks(): void {
    while (" \t\r\n".includes(this.#text[this.#at] ?? "x")) {
      if (this.#text[this.#at++] !== "\n") continue;
      this.#line++;
      this.#lineStart = this.#at;
    }
  }

  place(): JsonPlace {
    return { line: this.#line, column: this.#at - this.#lineStart + 1 };
  }

  #is(char: string): boolean {
    const found = this.#text[this.#at] === char;
    if (found) this.#at++;
    return found;
  }

  #take(token: RegExp): boolean {
    token.lastIndex = this.#at;
    if (!token.test(this.#text)) return false;
    this.#at = token.lastIndex;
    return true;
  }

  #found(): string {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return "the end of the document";
    const isVisible = code > 0x20 && code !== 0x7f;
    return isVisible
      ? `\`${String.fromCodePoint(code)}\``
      : `the character U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  }
}

/** Returns the value, or undefined for text that is not JSON or not UTF-8; no schema accepts undefined. */
export function parseJson(text: string | Uint8Array): unknown {
  try {
    return JSON.parse(
      typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true }).decode(text),
    );
  } catch {
    return undefined;
  }
}
