// What a cache rule asks of a request beside its path (`match`): its method, its fields, its query.
//
// A rule applies if all the kinds that it names hold. Of several methods, or several parameters, one is
// enough; of several fields each has to be there.
//
// Applications read queries differently: `preview[]`, `Preview`, `pre.view` and `a=1;preview` are `preview` to
// some of them. Such a query is "unsure" here. Whoever asks then takes the rule for one that may be meant: it
// keeps the request out of the cache if the rule bypasses, and gives nobody what the rule would share.

import { createHash } from "node:crypto";
import { fieldValue, type Field } from "../http/http-fields.ts";
import type { RuleMatch } from "./effective-devlove.ts";
import {
  canonicalName,
  compileNamePattern,
  compileTextPattern,
  type TextMatcher,
} from "./path-pattern.ts";
import { lowerCase, readNames } from "./query-rule.ts";

/** What of a request chooses its rule, beside its target. */
export type RuledRequest = { readonly method: string; readonly fields: readonly Field[] };

export type QueryMatch = "yes" | "no" | "unsure";

export type MatchJudge = {
  /** `rawQuery` is as sent, without its `?`. */
  readonly query: (rawQuery: string) => QueryMatch;
  /** The same for rules that ask the same of the query, "" for those that ask nothing. */
  readonly queryText: string;
  /** HEAD is judged as GET: it is answered by what GET stores. */
  readonly method: (method: string) => boolean;
  /** Undefined if the rule asks nothing of the fields. */
  readonly fields:
    | {
        readonly holds: (fields: readonly Field[]) => boolean;
        /** The same for rules that ask the same. */
        readonly text: string;
      }
    | undefined;
};

export function compileMatch({ method = [], header = {}, query = [] }: RuleMatch): MatchJudge {
  const methods: ReadonlySet<string> = new Set(method);
  return {
    query: compileQueryMatch(query),
    queryText: query.length === 0 ? "" : JSON.stringify(query),
    method: (name) => methods.size === 0 || methods.has(name === "HEAD" ? "GET" : name),
    fields: compileFieldMatch(header),
  };
}

/** Returns a short name for what the fields of a request decided, without characters that fields may lose. */
export function choiceName(decided: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(decided)).digest("hex").slice(0, 32);
}

function compileFieldMatch(header: NonNullable<RuleMatch["header"]>): MatchJudge["fields"] {
  const rows = Object.entries(header)
    .map(([name, pattern]) => ({ name: lowerCase(name), pattern }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (rows.length === 0) return undefined;
  const matchers = rows.map(({ name, pattern }) => ({
    name,
    matcher: compileTextPattern(pattern),
  }));
  return {
    text: JSON.stringify(rows.map(({ name, pattern }) => [name, pattern])),
    holds: (fields) =>
      matchers.every(({ name, matcher }) => {
        const value = fieldValue(fields, name);
        return value !== undefined && matcher.matches(value);
      }),
  };
}

type Item = {
  readonly name: TextMatcher;
  /** For names in lower case. */
  readonly lowerName: TextMatcher;
  /** Undefined if the parameter is enough, whatever its value. */
  readonly value: TextMatcher | undefined;
};

function itemOf(text: string): Item {
  const equals = text.indexOf("=");
  const name = equals < 0 ? text : text.slice(0, equals);
  return {
    name: compileNamePattern(name),
    lowerName: compileNamePattern(lowerCase(name)),
    value: equals < 0 ? undefined : compileNamePattern(text.slice(equals + 1)),
  };
}

function compileQueryMatch(items: readonly string[]): MatchJudge["query"] {
  if (items.length === 0) return () => "yes";
  const compiled = items.map(itemOf);
  return (rawQuery) => {
    if (rawQuery === "") return "no";
    const parameters = parametersOf(rawQuery);
    const said = compiled.map((item) => judge(item, parameters));
    if (said.includes("yes")) return "yes";
    return said.includes("unsure") ? "unsure" : "no";
  };
}

type Parameter = {
  readonly name: string;
  /** Every name that some framework reads. */
  readonly names: readonly string[];
  readonly value: string;
  /** Whether every server finds this parameter here. */
  readonly isWhole: boolean;
};

/** Splits a query at each `&`, and a piece with `;` there as well, as some servers do. */
function parametersOf(rawQuery: string): readonly Parameter[] {
  return rawQuery.split("&").flatMap((piece) => {
    if (!piece.includes(";")) return [parameterOf(piece, true)];
    return [piece, ...piece.split(";")].map((part) => parameterOf(part, false));
  });
}

function parameterOf(piece: string, isWhole: boolean): Parameter {
  const equals = piece.indexOf("=");
  const name = canonicalName(equals < 0 ? piece : piece.slice(0, equals));
  const value = equals < 0 ? "" : canonicalName(piece.slice(equals + 1));
  return { name, names: readNames(name), value, isWhole };
}

function judge({ name, lowerName, value }: Item, parameters: readonly Parameter[]): QueryMatch {
  const named = parameters.filter(({ names }) =>
    names.some((one) => name.matches(one) || lowerName.matches(lowerCase(one))),
  );
  const meant = named.filter((one) => value === undefined || value.matches(one.value));
  if (meant.length === 0) return "no";
  const isPlain = meant.some((one) => one.isWhole && name.matches(one.name));
  // Of two values, servers take the first or the last.
  return isPlain && (value === undefined || meant.length === named.length) ? "yes" : "unsure";
}
