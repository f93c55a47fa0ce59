// A program's settings: one table of fields (meaning, default, check) makes the reader, its errors and the
// complete commented default file.
//
// Keys are dotted in the table and nested in YAML: `cache.disk_max` is `disk_max` below `cache`. Unknown keys are errors with the nearest known key,
// or are told where a program goes back to a release that does not know them yet.

import {
  isMap,
  isScalar,
  LineCounter,
  parseDocument,
  stringify,
  type Document,
  type Node,
  type Pair,
} from "yaml";
import { messageOf } from "../core/faults.ts";
import { nearest } from "../core/nearest.ts";
import { unclosedIn } from "./unclosed-yaml.ts";

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      readonly reason: string;
      /** Whether the value may hold a secret, and must not be shown. */
      readonly isSecret?: true;
      /** Whether what is refused is a part that is not there, so that there is nothing to show. */
      readonly isMissing?: true;
    };

/** What a parser refuses. */
export type Refusal = Extract<Parsed<never>, { ok: false }>;

export type SettingsField<T> = {
  readonly doc: string;
  /** The default as it would stand in YAML. If absent, the key must be given, unless it is `optional`. */
  readonly fallback?: unknown;
  readonly optional?: true;
  /** An example, shown commented out if there is no default. */
  readonly example?: unknown;
  /** Whether a reload (SIGHUP) applies it; the others need a restart. */
  readonly live?: true;
  readonly parse: (raw: unknown) => Parsed<T>;
  /** Says why the value does not go with the others, which are all valid by themselves. */
  readonly conflict?: (settings: Readonly<Record<string, unknown>>) => string | undefined;
};
// A table holds fields of all types; what each yields is recovered by `Settings`.
export type FieldTable = Readonly<Record<string, SettingsField<unknown>>>;
type ValueOf<F> = F extends {
  readonly optional: true;
  readonly parse: (raw: unknown) => Parsed<infer V>;
}
  ? V | undefined
  : F extends { readonly parse: (raw: unknown) => Parsed<infer V> }
    ? V
    : never;
export type Settings<T extends FieldTable> = { readonly [K in keyof T]: ValueOf<T[K]> };

export type SettingsError = {
  readonly line: number;
  readonly key: string;
  readonly message: string;
  /** The fault is that nobody knows the key. */
  readonly isUnknownKey?: true;
  /** The fault is that it is not there. */
  readonly isMissing?: true;
};
export type SettingsRead<T extends FieldTable> =
  | {
      readonly ok: true;
      readonly settings: Settings<T>;
      /** Keys that are not used; none where they are errors. */
      readonly unknown: readonly SettingsError[];
    }
  | { readonly ok: false; readonly errors: readonly SettingsError[] };

/** Reads settings and reports all errors, not only the first; lines count from 1. */
export function readSettings<const T extends FieldTable>(
  table: T,
  yaml: string,
  unknownKeys: "refused" | "told" = "refused",
): SettingsRead<T> {
  const lines = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: lines, uniqueKeys: true });
  const last = lastLine(yaml);
  const lineOf = (offset: number | undefined): number =>
    offset === undefined ? 1 : Math.min(lines.linePos(offset).line, last);
  const broken = document.errors.map(({ pos, message }) => ({
    line: lineOf(pos[0]),
    key: "",
    message: plain(message),
  }));
  if (broken.length > 0) return { ok: false, errors: unclosedError(yaml) ?? broken };

  const errors: SettingsError[] = [];
  const given = new Map<string, { raw: unknown; line: number }>();
  collect(document, table, given, errors, lineOf);
  const values: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(table)) {
    const { raw, line } = given.get(key) ?? { raw: field.fallback, line: 1 };
    if (raw === undefined || raw === null) {
      if (field.optional !== true && field.fallback === undefined)
        errors.push({ line, key, message: "is required", isMissing: true });
      else if (field.optional !== true) errors.push({ line, key, message: "must not be empty" });
      continue;
    }
    const parsed = field.parse(raw);
    if (parsed.ok) values[key] = parsed.value;
    else errors.push({ line, key, message: refusedText(parsed, raw) });
  }
  const isUsable = (): boolean =>
    errors.every(({ isUnknownKey }) => isUnknownKey === true && unknownKeys === "told");
  if (isUsable())
    for (const [key, field] of Object.entries(table)) {
      const message = field.conflict?.(values);
      if (message !== undefined) errors.push({ line: given.get(key)?.line ?? 1, key, message });
    }
  if (!isUsable()) return { ok: false, errors };
  // Each value went through its field's parser just now.
  return { ok: true, settings: values as Settings<T>, unknown: errors };
}

function refusedText({ reason, isSecret, isMissing }: Refusal, raw: unknown): string {
  return isSecret === true || isMissing === true
    ? reason
    : `${reason}, found ${JSON.stringify(raw)}`;
}

/** The keys whose values differ and which only a restart applies. */
export function restartKeys<const T extends FieldTable>(
  table: T,
  running: Settings<T>,
  read: Settings<T>,
): readonly string[] {
  const text = (settings: Settings<T>, key: string): string | undefined =>
    JSON.stringify(settings[key]);
  return Object.entries(table)
    .filter(([key, { live }]) => live !== true && text(running, key) !== text(read, key))
    .map(([key]) => key);
}

function collect(
  document: Document,
  table: FieldTable,
  given: Map<string, { raw: unknown; line: number }>,
  errors: SettingsError[],
  lineOf: (offset: number | undefined) => number,
): void {
  const keys = Object.keys(table);
  const sections = keys.flatMap((key) => {
    const parts = key.split(".");
    return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join("."));
  });
  const visit = (node: Node | null, prefix: string): void => {
    if (!isMap(node)) {
      if (node !== null && !(isScalar(node) && node.value === null)) {
        errors.push({
          line: lineOf(node.range?.[0]),
          key: prefix,
          message: "must be a mapping of keys",
        });
      }
      return;
    }
    for (const pair of node.items as Pair<Node, Node | null>[]) {
      const name = String(isScalar(pair.key) ? pair.key.value : pair.key);
      const key = prefix === "" ? name : `${prefix}.${name}`;
      const line = lineOf(pair.key.range?.[0]);
      if (keys.includes(key)) {
        try {
          given.set(key, { raw: pair.value?.toJS(document), line });
        } catch (error) {
          errors.push({ line, key, message: messageOf(error) }); // An alias without its anchor.
        }
      } else if (sections.includes(key)) visit(pair.value, key);
      else {
        const near = nearest(key, [...keys, ...sections]);
        errors.push({
          line,
          key,
          message: `unknown key${near === undefined ? "" : `; did you mean ${near}?`}`,
          isUnknownKey: true,
        });
      }
    }
  };
  visit(document.contents, "");
}

/** What is missing at the end of a text is missed where that ends, be it behind its last line break: it belongs into the last line that is no comment. */
function lastLine(yaml: string): number {
  const lines = yaml.split("\n");
  const last = lines.findLastIndex((line) => !/^\s*(#|$)/.test(line));
  return Math.max(0, last) + 1;
}

function notClosed(mark: string): string {
  const isList = mark === "[" || mark === "{";
  return `this ${mark} is not closed${isList ? ", or what stands in it is not further in than its key" : ""}`;
}

/** What follows something that is not closed is no error of its own. */
function unclosedError(yaml: string): readonly SettingsError[] | undefined {
  const unclosed = unclosedIn(yaml);
  if (unclosed === undefined) return undefined;
  return [{ line: unclosed.line, key: "", message: notClosed(unclosed.mark) }];
}

/** Returns why a text is no YAML, as the library says it, with a line that the text has. */
export function yamlReason(error: unknown, yaml: string): string {
  const unclosed = unclosedIn(yaml);
  if (unclosed !== undefined) return `an unclosed ${unclosed.mark} at line ${unclosed.line}`;
  const [reason = ""] = messageOf(error).split("\n");
  const last = lastLine(yaml);
  return reason
    .replace(/:$/, "")
    .replace(/ at line (\d+), column \d+$/, (place, line: string) =>
      Number(line) > last ? ` at line ${last}` : place,
    );
}

/** Removes the place that the YAML library repeats; the place is told in front. */
function plain(message: string): string {
  return (message.split("\n")[0] ?? message).replace(/ at line \d+, column \d+:?$/, "");
}

/**
 * Writes the complete default file: every key with its meaning; keys without a default are commented out with
 * an example.
 */
export function renderSettings(head: string, table: FieldTable): string {
  const out = [comment(head, ""), ""];
  const opened = new Set<string>();
  for (const [key, field] of Object.entries(table)) {
    const path = key.split(".");
    const unset = field.fallback === undefined;
    path.slice(0, -1).forEach((part, depth) => {
      const section = path.slice(0, depth + 1).join(".");
      if (opened.has(section)) return;
      opened.add(section);
      const inhabited = Object.entries(table).some(
        ([other, { fallback }]) => other.startsWith(`${section}.`) && fallback !== undefined,
      );
      out.push(`${inhabited ? "" : "# "}${"  ".repeat(depth)}${part}:`);
    });
    const indent = "  ".repeat(path.length - 1);
    const hints = [
      field.live === true ? "Reloadable." : "",
      unset && field.optional !== true ? "Required." : "",
    ].filter((hint) => hint !== "");
    out.push(comment([field.doc, ...hints].join(" "), indent));
    const yaml = stringify({
      [path.at(-1) ?? key]: unset ? (field.example ?? null) : field.fallback,
    }).trimEnd();
    out.push(...yaml.split("\n").map((line) => `${indent}${unset ? "# " : ""}${line}`), "");
  }
  return `${out.join("\n").trimEnd()}\n`;
}

/** Comments of a settings file are as wide as those of the sources. */
const commentWidth = 110;

function comment(text: string, indent: string): string {
  const start = `${indent}#`;
  return text
    .split("\n")
    .map((paragraph) => {
      let [lines, line] = ["", start];
      for (const word of paragraph.split(" ")) {
        if (line !== start && line.length + 1 + word.length > commentWidth)
          [lines, line] = [`${lines}${line}\n`, start];
        line += ` ${word}`;
      }
      return lines + line;
    })
    .join("\n");
}
