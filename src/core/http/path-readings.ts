// How else an application may read a path. A rule matches the path as RFC 3986 has it (canonicalPath); some
// servers decode it twice, take `\` or `%2F` for a slash, cut `;…` off a segment (Java), or end it at a
// decoded `?`, `#` or NUL. Whoever knows how a server reads paths could have a page cached under a rule for
// other paths, or slip past the rule that keeps it out of the cache.

import { resolvedPath } from "../serving/path-pattern.ts";

export type PathReadings = {
  /** The canonical readings other than that of canonicalPath; few, and mostly none. */
  readonly others: readonly string[];
  /**
   * True if the path climbs in a spelling that no browser sends, or is encoded more often than anybody does;
   * no rule is then sure to be meant for it.
   */
  readonly isTwisted: boolean;
  /** What a server that decodes a `?` before it splits the target takes for the query; "" if there is none. */
  readonly hiddenQuery: string;
};

const roundsMax = 4;
/**
 * Finds what servers read in several ways. A percent sign that begins no escape counts: once its digits are
 * decoded, it may begin one.
 */
const unusual = /[\\;]|\/\.\.|%(?:2[35ef]|3[bf]|5c|[01][0-9a-f])|%(?![0-9a-f]{2})/i;
const plain: PathReadings = { others: [], isTwisted: false, hiddenQuery: "" };

export function readingsOf(rawPath: string): PathReadings {
  if (!unusual.test(rawPath)) return plain;
  const whole = decoded(rawPath);
  const others = [
    whole,
    ended(withoutParameters(whole)),
    ended(decoded(withoutParameters(rawPath))),
  ];
  return {
    others: [...new Set(others.map(resolvedPath))],
    // oxlint-disable-next-line no-control-regex -- what some servers end a path at.
    isTwisted: /%[0-9a-f]{2}/i.test(whole) || /\/\.\.(?:[/;?#\x00-\x1f]|$)/.test(whole),
    hiddenQuery: /\?([^#]*)/.exec(whole)?.[1] ?? "",
  };
}

/**
 * Decodes a path. A percent sign that was encoded any number of times counts as one; otherwise each layer
 * would cost a round.
 */
function decoded(path: string): string {
  let text = path;
  for (let round = 0; round < roundsMax && text.includes("%"); round++)
    text = text.replaceAll(/%(?:25)*([0-9a-f]{2})/gi, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
  return text.replaceAll("\\", "/");
}

const withoutParameters = (path: string): string => path.replaceAll(/;[^/]*/g, "");

// oxlint-disable-next-line no-control-regex -- what some servers end a path at.
const ended = (path: string): string => path.replace(/[?#\x00-\x1f][^]*$/, "");
