// A JSON array of texts, each an address or CIDR range, read piece by piece (RFC 8259): a million of them parsed at once would hold up every other request.

import {
  ListFormFault,
  RangeReader,
  type LineFault,
  type ListedRange,
  type ListPart,
  type RangeRefusal,
} from "./range-list.ts";

/** Longer than any address with its prefix. */
const textCharsMax = 100;
const space = /[ \t\r\n]*/y;

export class RangeJsonReader {
  readonly #reader = new RangeReader();
  readonly #refusal: RangeRefusal;
  #rest = "";
  /** Characters before `#rest`. */
  #passed = 0;
  #expects: "array" | "first" | "item" | "comma" | "nothing" = "array";
  #items = 0;

  constructor(refusal: RangeRefusal = () => undefined) {
    this.#refusal = refusal;
  }

  /** How many texts were read so far. */
  get lines(): number {
    return this.#items;
  }

  /** Takes the next piece; faults are told by the number of the text, from 1 on. Throws ListFormFault. */
  read(piece: string): ListPart {
    const text = this.#rest + piece;
    const [ranges, faults]: [ListedRange[], LineFault[]] = [[], []];
    let at = 0;
    for (;;) {
      space.lastIndex = at;
      space.test(text);
      at = space.lastIndex;
      const end = this.#step(text, at, ranges, faults);
      if (end === undefined) break;
      at = end;
    }
    this.#rest = text.slice(at);
    this.#passed += at;
    return { ranges, faults };
  }

  /** Says that this was all. Throws ListFormFault where something is missing. */
  end(): ListPart {
    if (this.#expects !== "nothing" || this.#rest !== "") throw this.#fault("it ends", 0);
    return { ranges: [], faults: [] };
  }

  /** Returns where the next step begins; undefined where more text is needed. */
  #step(text: string, at: number, ranges: ListedRange[], faults: LineFault[]): number | undefined {
    const sign = text[at];
    if (sign === undefined) return undefined;
    switch (this.#expects) {
      case "array":
        if (sign !== "[") throw this.#fault(`${JSON.stringify(sign)} where [ begins it,`, at);
        this.#expects = "first";
        return at + 1;
      case "comma":
        if (sign === ",") this.#expects = "item";
        else if (sign === "]") this.#expects = "nothing";
        else throw this.#fault(`${JSON.stringify(sign)} where , or ] stands,`, at);
        return at + 1;
      case "nothing":
        throw this.#fault(`${JSON.stringify(sign)} behind its end,`, at);
      default:
        return this.#item(text, at, ranges, faults);
    }
  }

  #item(text: string, at: number, ranges: ListedRange[], faults: LineFault[]): number | undefined {
    if (text[at] === "]" && this.#expects === "first") {
      this.#expects = "nothing";
      return at + 1;
    }
    if (text[at] !== '"') throw this.#fault(`${JSON.stringify(text[at])} where a text begins,`, at);
    const end = endOfText(text, at + 1);
    if (end === undefined) {
      if (text.length - at > textCharsMax) throw this.#fault("a text that is too long", at);
      return undefined;
    }
    this.#items++;
    const listed = this.#reader.read(this.#textOf(text.slice(at, end), at).trim());
    const reason = typeof listed === "string" ? listed : this.#refusal(listed);
    if (reason !== undefined) faults.push({ line: this.#items, reason });
    else if (typeof listed !== "string") ranges.push(listed);
    this.#expects = "comma";
    return end;
  }

  #textOf(literal: string, at: number): string {
    if (!literal.includes("\\")) return literal.slice(1, -1);
    try {
      return String(JSON.parse(literal));
    } catch {
      throw this.#fault("a text that is no JSON", at);
    }
  }

  #fault(what: string, at: number): ListFormFault {
    return new ListFormFault(
      `is no JSON array of texts: ${what} at character ${this.#passed + at}`,
    );
  }
}

/** Returns where a text ends, behind its quotation mark; undefined if it does not end here. */
function endOfText(text: string, from: number): number | undefined {
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return undefined;
}
