// What a clear names on a command line: patterns as arguments, everything else by options that may be repeated.

import type { Options } from "../base/command.ts";
import { AccelError } from "../core/faults.ts";

export const clearOptions = {
  url: { type: "string", multiple: true },
  prefix: { type: "string", multiple: true },
  tag: { type: "string", multiple: true },
  host: { type: "string", multiple: true },
  everything: { type: "boolean" },
  soft: { type: "boolean" },
} as const satisfies Options;

export const clearUsage = [
  "  --url URL         clear this URL, or a path with its query at every host of the domain; may be repeated",
  "  --prefix PATH     clear a path and all below it: /foo is /foo, /foo/... and /foo?..., not /foobar; may be repeated",
  "  --tag TAG         clear the responses that the origin gave this tag; may be repeated",
  "  --host HOST       clear everything of a host of the domain; may be repeated",
  "  --everything      clear everything of the domain",
  "  --soft            make it stale and keep it: served only where a rule for stale answers allows it, until the origin confirms or replaces it",
].join("\n");

type Given = {
  readonly url?: readonly string[] | undefined;
  readonly prefix?: readonly string[] | undefined;
  readonly tag?: readonly string[] | undefined;
  readonly host?: readonly string[] | undefined;
  readonly everything?: boolean | undefined;
  readonly soft?: boolean | undefined;
};

/** What is named; what is absent was not. */
export type ClearNames = {
  readonly patterns?: string[];
  readonly urls?: string[];
  readonly prefixes?: string[];
  readonly tags?: string[];
  readonly hosts?: string[];
  readonly everything?: true;
  readonly soft?: true;
};

/** Reads what is named. Undefined: nothing is. */
export function clearNames(given: Given, patterns: readonly string[]): ClearNames | undefined {
  const names = {
    ...(patterns.length > 0 && { patterns: [...patterns] }),
    ...(given.url !== undefined && { urls: [...given.url] }),
    ...(given.prefix !== undefined && { prefixes: [...given.prefix] }),
    ...(given.tag !== undefined && { tags: [...given.tag] }),
    ...(given.host !== undefined && { hosts: [...given.host] }),
    ...(given.everything === true && { everything: true as const }),
  };
  if (Object.keys(names).length === 0) return undefined;
  return { ...names, ...(given.soft === true && { soft: true as const }) };
}

/** As `clearNames`. Throws USAGE where nothing is named. */
export function neededNames(
  given: Given,
  patterns: readonly string[],
  command: string,
): ClearNames {
  const names = clearNames(given, patterns);
  if (names === undefined)
    throw new AccelError(
      "USAGE",
      `${command} takes at least one pattern, --url, --prefix, --tag or --host, or --everything`,
    );
  return names;
}
