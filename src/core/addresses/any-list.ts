// A list of ranges of whatever form, known by its first character: lines of text, a JSON array of texts, or the object in which search engines publish theirs. What a
// server says of its type is often wrong.

import { PublishedRangesReader } from "./published-ranges.ts";
import { RangeJsonReader } from "./range-json.ts";
import { ListFormFault, RangeListReader, type ListPart, type RangeRefusal } from "./range-list.ts";

type Reader = RangeListReader | RangeJsonReader | PublishedRangesReader;

export class AnyListReader {
  readonly #refusal: RangeRefusal;
  #reader: Reader | undefined;

  constructor(refusal: RangeRefusal = () => undefined) {
    this.#refusal = refusal;
  }

  /** What its faults count. */
  get unit(): "line" | "item" {
    return this.#reader instanceof RangeListReader ? "line" : "item";
  }

  /** Throws ListFormFault. */
  read(piece: string): ListPart {
    this.#reader ??= this.#chosen(piece);
    return this.#reader?.read(piece) ?? { ranges: [], faults: [] };
  }

  /** Throws ListFormFault. */
  end(): ListPart {
    return this.#reader?.end() ?? { ranges: [], faults: [] };
  }

  /** Returns a further part of a form that is read whole; undefined: there is none. */
  more(): ListPart | undefined {
    return this.#reader instanceof PublishedRangesReader ? this.#reader.more() : undefined;
  }

  /** Blank pieces choose nothing; what begins with a byte order mark is read behind it by TextDecoder. */
  #chosen(piece: string): Reader | undefined {
    const first = piece.trimStart()[0];
    switch (first) {
      case undefined:
        return undefined;
      case "<":
        // Of an error, of a login, or of a site that shows the list.
        throw new ListFormFault("is a page (HTML or XML) and no list");
      case "[":
        return new RangeJsonReader(this.#refusal);
      case "{":
        return new PublishedRangesReader(this.#refusal);
      default:
        return new RangeListReader(this.#refusal);
    }
  }
}
