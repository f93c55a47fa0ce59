// How bots that no crawler's pattern matches were named until names were tokens of their agents. Pairs that customers set then hold names of this kind.

import { nameCharsMax } from "./agent-tokens.ts";

const costume: ReadonlySet<string> = new Set([
  "mozilla",
  "applewebkit",
  "chrome",
  "safari",
  "gecko",
  "version",
  "mobile",
  "firefox",
  "khtml",
  "compatible",
]);

/** The first product; in a browser's costume the first one that is no browser's. Never changed: stored pairs depend on it. */
export function formerProductName(userAgent: string): string {
  let name: string | undefined;
  // Each character is looked at once: a token, and whether a version follows.
  for (const [, token = "", slash] of userAgent.matchAll(/([A-Za-z][\w.!#$&'*+^`|~-]*)(\/?)/g)) {
    if (token.length < 2) continue;
    if (slash === "/" && !costume.has(token.toLowerCase())) return token.slice(0, nameCharsMax);
    name ??= /^[\w.-]+/.exec(token)?.[0];
  }
  return name === undefined ? "unnamed" : name.slice(0, nameCharsMax);
}
