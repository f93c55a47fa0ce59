// Lists of addresses and ranges as operators keep them: one a line; "#" and ";" begin a comment; blank lines
// are skipped.
//
// Text may come in pieces of any length. A line that is no address or CIDR range is reported with its number.

import { AddressReader } from "./address-reader.ts";
import { formatRange, parseRange, type IpRange } from "./ip.ts";

export type ListedRange = { readonly text: string; readonly range: IpRange };
export type LineFault = { readonly line: number; readonly reason: string };
export type ListPart = {
  readonly ranges: readonly ListedRange[];
  readonly faults: readonly LineFault[];
};

/** What came is no list of the form that it begins with. The message goes on from "it". */
export class ListFormFault extends Error {}

/** Longer than any address with its prefix and a comment that somebody would read. */
const lineCharsMax = 4_096;
const shownCharsMax = 60;

/**
 * Reads one address or CIDR range. IPv4 without a fault, by far the most common, is read ten times as fast as
 * the rest.
 */
export class RangeReader {
  readonly #reader = new AddressReader();

  /** Returns the range, or a text that says why it is none. */
  read(text: string): ListedRange | string {
    return this.#plainIpv4(text) ?? listedRange(text);
  }

  #plainIpv4(text: string): ListedRange | undefined {
    const slash = text.indexOf("/");
    const address = slash < 0 ? text : text.slice(0, slash);
    const prefix = slash < 0 ? 32 : prefixOf(text.slice(slash + 1));
    if (prefix === undefined || address.includes(":") || this.#reader.read(address) !== 4)
      return undefined;
    const first = this.#reader.words[0] ?? 0;
    const size = 2 ** (32 - prefix);
    if (first % size !== 0) return undefined;
    const range = { family: 4, first: BigInt(first), last: BigInt(first + size - 1) } as const;
    return { text: prefix === 32 ? address : `${address}/${prefix}`, range };
  }
}

/** Says why a range may not stand in a list; undefined: it may. */
export type RangeRefusal = (listed: ListedRange) => string | undefined;

export class RangeListReader {
  readonly #reader = new RangeReader();
  readonly #refusal: RangeRefusal;
  #rest = "";
  #line = 0;

  constructor(refusal: RangeRefusal = () => undefined) {
    this.#refusal = refusal;
  }

  /** The number of lines read so far. */
  get lines(): number {
    return this.#line;
  }

  read(text: string): ListPart {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(0, lineCharsMax + 1);
    return this.#parse(lines);
  }

  /** Reads the last line, which need not end with a line feed. */
  end(): ListPart {
    const last = this.#rest;
    this.#rest = "";
    return this.#parse(last === "" ? [] : [last]);
  }

  #parse(lines: readonly string[]): ListPart {
    const ranges: ListedRange[] = [];
    const faults: LineFault[] = [];
    for (const line of lines) {
      this.#line++;
      const comment = line.search(/[#;]/);
      const text = (comment < 0 ? line : line.slice(0, comment)).trim();
      if (line.length > lineCharsMax) {
        faults.push({ line: this.#line, reason: `longer than ${lineCharsMax} characters` });
      } else if (text !== "") {
        const listed = this.#reader.read(text);
        const reason = typeof listed === "string" ? listed : this.#refusal(listed);
        if (reason !== undefined) faults.push({ line: this.#line, reason });
        else if (typeof listed !== "string") ranges.push(listed);
      }
    }
    return { ranges, faults };
  }
}

function prefixOf(digits: string): number | undefined {
  const prefix = /^\d{1,2}$/.test(digits) ? Number(digits) : 33;
  return prefix <= 32 ? prefix : undefined;
}

function listedRange(text: string): ListedRange | string {
  const parsed = parseRange(text);
  if (parsed.ok) return { text: formatRange(parsed.range), range: parsed.range };
  return text.length > shownCharsMax
    ? `"${text.slice(0, shownCharsMax)}…" is not an IPv4 or IPv6 address or CIDR range`
    : parsed.reason;
}
