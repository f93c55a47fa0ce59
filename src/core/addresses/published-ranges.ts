// The JSON objects in which search engines and clouds publish their addresses: `{"prefixes": [{"ipv4Prefix": "192.0.2.0/27"}, {"ipv6Prefix": "2001:db8::/64"}]}`,
// or with `ip_prefix`, `ipv6_prefix` and `ipv6_prefixes`. What else they say of a range is left out.
//
// The largest of them has some 3 MB, so they are read whole, within a bound.

import {
  ListFormFault,
  RangeReader,
  type LineFault,
  type ListPart,
  type RangeRefusal,
} from "./range-list.ts";

const charsMax = 8 * 1024 * 1024;
/** An address of IPv6 takes 16 µs to read, and others wait for each part. */
const textsPerPart = 1_000;
const listNames = ["prefixes", "ipv6_prefixes"] as const;
const rangeNames = ["ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix"] as const;

const faultOf = (what: string): ListFormFault =>
  new ListFormFault(`is no JSON object with "prefixes": ${what}`);

export class PublishedRangesReader {
  readonly #refusal: RangeRefusal;
  readonly #reader = new RangeReader();
  #text = "";
  #texts: readonly string[] = [];
  #items = 0;

  constructor(refusal: RangeRefusal = () => undefined) {
    this.#refusal = refusal;
  }

  /** How many ranges were read so far. */
  get lines(): number {
    return this.#items;
  }

  /** Throws ListFormFault. */
  read(piece: string): ListPart {
    this.#text += piece;
    if (this.#text.length > charsMax) throw faultOf(`it has more than ${charsMax} characters`);
    return { ranges: [], faults: [] };
  }

  /** Returns the first part. Throws ListFormFault. */
  end(): ListPart {
    this.#texts = rangeTexts(this.#text);
    this.#text = "";
    return this.more() ?? { ranges: [], faults: [] };
  }

  /** Returns the next part; undefined: there is none. */
  more(): ListPart | undefined {
    const from = this.#items;
    const texts = this.#texts.slice(from, from + textsPerPart);
    if (texts.length === 0) return undefined;
    this.#items += texts.length;
    const faults: LineFault[] = [];
    const ranges = texts.flatMap((text, at) => {
      const listed = this.#reader.read(text.trim());
      const reason = typeof listed === "string" ? listed : this.#refusal(listed);
      if (reason !== undefined) faults.push({ line: from + at + 1, reason });
      return typeof listed === "string" || reason !== undefined ? [] : [listed];
    });
    return { ranges, faults };
  }
}

function rangeTexts(text: string): readonly string[] {
  const whole = parsed(text);
  const lists = listNames.flatMap((name) => whole[name] ?? []);
  if (lists.length === 0) throw faultOf("there are none in it");
  return lists.map((item, at) => {
    const members = item as Readonly<Record<string, unknown>> | null;
    for (const name of rangeNames) {
      const range = members?.[name];
      if (typeof range === "string") return range;
    }
    throw faultOf(`its prefix ${at + 1} has none of ${rangeNames.join(", ")}`);
  });
}

type Lists = Partial<Record<(typeof listNames)[number], readonly unknown[]>>;

function parsed(text: string): Lists {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    throw faultOf("it is no JSON");
  }
  // Each member is checked here and above.
  const members = whole as Readonly<Record<string, unknown>> | null;
  const lists: Lists = {};
  for (const name of listNames) {
    const list = members?.[name];
    if (Array.isArray(list)) lists[name] = list;
  }
  return lists;
}
