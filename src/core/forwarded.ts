// The field `Forwarded` (RFC 7239) as far as it says whose request it is: one hop an element, the node of its `for` parameter.
//
// Read from the right: what a trusted proxy appended is well-formed whatever a visitor wrote before it (a quote without end would swallow it otherwise).

import { parseIp, type IpAddress } from "./ip.ts";

const token = String.raw`[!#$%&'*+.^_\x60|~0-9A-Za-z-]+`;
const quoted = String.raw`"(?:[^"\\]|\\.)*"`;
const pair = String.raw`[ \t]*${token}[ \t]*=[ \t]*(?:${token}|${quoted})[ \t]*`;
const elementForm = new RegExp(`^(?:${pair}|[ \\t]*)(?:;(?:${pair}|[ \\t]*))*$`);
const pairs = new RegExp(`(${token})[ \\t]*=[ \\t]*(${token}|${quoted})`, "g");
/** Through so many proxies a request comes at most; what lies before was said by nobody that we trust. */
const hopsMax = 64;
/** Commas within the quotes of one element. */
const elementCommasMax = 8;

/**
 * The `for` nodes, nearest hop first: the order in which they are to be trusted. Undefined stands for a hop that names no address (`unknown`, an obfuscated
 * identifier). It is the last one where an element is malformed, for nobody can tell what lies before that.
 */
export function forwardedHops(value: string): readonly (IpAddress | undefined)[] {
  const hops: (IpAddress | undefined)[] = [];
  for (let end = value.length; end >= 0 && hops.length < hopsMax;) {
    const start = elementStart(value, end);
    if (start === undefined) return [...hops, undefined];
    const element = value.slice(start, end);
    if (element.trim() !== "") hops.push(nodeOf(element));
    end = start - 1;
  }
  return hops;
}

/** Where the last well-formed element before `end` begins: behind a comma, or at the start. */
function elementStart(value: string, end: number): number | undefined {
  let before = end;
  for (let commas = 0; commas <= elementCommasMax; commas++) {
    const comma = before === 0 ? -1 : value.lastIndexOf(",", before - 1);
    if (elementForm.test(value.slice(comma + 1, end))) return comma + 1;
    if (comma < 0) return undefined;
    before = comma;
  }
  return undefined;
}

function nodeOf(element: string): IpAddress | undefined {
  // Each match takes a quoted string whole: nothing within one counts.
  const [said, another] = [...element.matchAll(pairs)]
    .filter(([, name]) => name?.toLowerCase() === "for")
    .map(([, , value]) => value ?? "");
  if (said === undefined || another !== undefined) return undefined; // §4: each parameter once an element.
  return parseNode(said.startsWith('"') ? said.slice(1, -1).replaceAll(/\\(.)/g, "$1") : said);
}

/** §6: an IPv4 address, or an IPv6 address in brackets, each with or without a port; ports may be obfuscated (`_` and a name). */
export function parseNode(text: string): IpAddress | undefined {
  const [, six, four] = /^(?:\[([^\]]+)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(text) ?? [];
  const address = six ?? four;
  return address === undefined ? undefined : parseIp(address);
}
