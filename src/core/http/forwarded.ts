// The field `Forwarded` (RFC 7239) as far as it says whose request it is: one hop an element, its `for` and `proto` parameters.
//
// Read from the right: what a trusted proxy appended is well-formed whatever a visitor wrote before it (a quote without end would swallow it otherwise).

export type Hop = {
  /** Not checked to be one; undefined where the hop names none (`unknown`, an obfuscated identifier). */
  readonly address: string | undefined;
  readonly proto: string | undefined;
};

const token = String.raw`[!#$%&'*+.^_\x60|~0-9A-Za-z-]+`;
const quoted = String.raw`"(?:[^"\\]|\\.)*"`;
const pair = String.raw`[ \t]*${token}[ \t]*=[ \t]*(?:${token}|${quoted})[ \t]*`;
const elementForm = new RegExp(`^(?:${pair}|[ \\t]*)(?:;(?:${pair}|[ \\t]*))*$`);
const pairs = new RegExp(`(${token})[ \\t]*=[ \\t]*(${token}|${quoted})`, "g");
/** Commas within the quotes of one element. */
const elementCommasMax = 8;
const elementCharsMax = 1_024;

/**
 * Nearest hop first: the order in which they are to be trusted. At most `elementsMax` elements are looked at, each when it is asked for. A malformed one is
 * the last, for nobody can tell what lies before it.
 */
export function* forwardedHops(value: string, elementsMax: number): Generator<Hop> {
  let end = value.length;
  for (let elements = 0; end >= 0 && elements < elementsMax; elements++) {
    const start = elementStart(value, end);
    if (start === undefined) {
      yield { address: undefined, proto: undefined };
      return;
    }
    const element = value.slice(start, end);
    if (element.trim() !== "") yield hopOf(element);
    end = start - 1;
  }
}

/** Where the last well-formed element before `end` begins: behind a comma, or at the start. */
function elementStart(value: string, end: number): number | undefined {
  let before = end;
  for (let commas = 0; commas <= elementCommasMax; commas++) {
    const comma = before === 0 ? -1 : value.lastIndexOf(",", before - 1);
    if (end - comma > elementCharsMax) return undefined;
    if (elementForm.test(value.slice(comma + 1, end))) return comma + 1;
    if (comma < 0) return undefined;
    before = comma;
  }
  return undefined;
}

function hopOf(element: string): Hop {
  const said = new Map<string, string | undefined>();
  // Each match takes a quoted string whole: nothing within one counts.
  for (const [, name = "", value = ""] of element.matchAll(pairs)) {
    const parameter = name.toLowerCase();
    said.set(parameter, said.has(parameter) ? undefined : unquoted(value)); // §4: each parameter once an element.
  }
  const node = said.get("for");
  return { address: node === undefined ? undefined : addressOf(node), proto: said.get("proto") };
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;
}

/** §6: an IPv4 address, or an IPv6 address in brackets, each with or without a port; ports may be obfuscated (`_` and a name). */
function addressOf(node: string): string | undefined {
  const [, six, four] =
    /^(?:\[([^\]]*:[^\]]*)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(node) ?? [];
  return six ?? four;
}
