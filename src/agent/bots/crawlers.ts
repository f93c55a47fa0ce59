// The known crawlers, from the package crawler-user-agents: pattern, name, description. Refreshed by updating the package.

import list from "crawler-user-agents";

export type Crawler = {
  readonly pattern: RegExp;
  readonly name: string;
  readonly description: string | null;
};

// The package's types lag behind its data, which has described every crawler since 1.40.
type Described = { readonly pattern: string; readonly description?: string };

export const crawlers: readonly Crawler[] = (list as readonly Described[]).map(
  ({ pattern, description }) => ({
    pattern: new RegExp(pattern),
    name: nameOf(pattern),
    description: description ?? null,
  }),
);

/** "Googlebot\/" → "Googlebot", "^curl" → "curl", "[wW]get" → "wget": the text that the pattern looks for. */
export function nameOf(pattern: string): string {
  const name = pattern
    .replaceAll(/\[\\s\]|\\s[*+]?/g, " ")
    .replaceAll(/\\[bBdDSwW]|\(\^\| \)|\(\?:[^)]*\)\??/g, "")
    .replaceAll(/\[\\?(.)[^\]]*\]/g, "$1")
    .replaceAll(/\\(.)/g, "$1")
    .replaceAll(/[\^$*+?()|{}]/g, "")
    .replaceAll(/^[\s/.:-]+|[\s/.:-]+$/g, "");
  return name === "" ? pattern : name;
}
