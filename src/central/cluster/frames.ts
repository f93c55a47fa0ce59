// Messages between centrals as texts that PostgreSQL's NOTIFY takes: shorter than 8,000 bytes.
//
//   m FROM\nJSON\nJSON…               whole messages
//   p FROM NUMBER PART PARTS\nTEXT     a part of a message that is larger
//
// All of it is ASCII, so that a text may be cut anywhere. Another form is of another release, and is left out.

import { centralIdForm } from "../../wire/bus-message.ts";

/** What one notice may have, with room to PostgreSQL's limit of 7,999. */
export const frameBytesMax = 7_900;
/** As much as an agent may be told over its channel. */
export const messageCharsMax = 8 * 2 ** 20;
/** The line before the text: ids and three numbers. */
const headCharsMax = 60;

/** JSON in ASCII. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Puts texts of `asciiJson` into frames, in their order. `firstNo` numbers those that are cut, and counts on with each. */
export function framesOf(
  from: string,
  texts: readonly string[],
  firstNo: number,
): { readonly frames: readonly string[]; readonly nextNo: number } {
  const frames: string[] = [];
  const head = `m ${from}`;
  let open = head;
  const close = (): void => {
    if (open !== head) frames.push(open);
    open = head;
  };
  let no = firstNo;
  for (const text of texts) {
    if (open.length + 1 + text.length > frameBytesMax) close();
    if (open.length + 1 + text.length <= frameBytesMax) {
      open += `\n${text}`;
      continue;
    }
    const size = frameBytesMax - headCharsMax;
    const parts = Math.ceil(text.length / size);
    for (let part = 0; part < parts; part++)
      frames.push(
        `p ${from} ${no} ${part} ${parts}\n${text.slice(part * size, (part + 1) * size)}`,
      );
    no++;
  }
  close();
  return { frames, nextNo: no };
}

/** The texts of messages that are whole, and who sent them. */
export type Unframed = { readonly from: string; readonly texts: readonly string[] };

type Begun = { readonly no: number; readonly parts: number; readonly texts: string[] };

/** Puts frames together again. Those of one sender come in order. */
export class Unframer {
  readonly #begun = new Map<string, Begun>();

  /** Takes a frame; undefined where nothing is whole by it. */
  take(frame: string): Unframed | undefined {
    const end = frame.indexOf("\n");
    const [kind, from = "", ...numbers] = frame.slice(0, end).split(" ");
    if (end < 0 || !centralIdForm.test(from)) return undefined;
    const text = frame.slice(end + 1);
    if (kind === "m") return { from, texts: text.split("\n") };
    return kind === "p" ? this.#takePart(from, numbers.map(Number), text) : undefined;
  }

  /** Forgets what is not whole: parts may be missing. */
  clear(): void {
    this.#begun.clear();
  }

  /** Forgets what a sender that is gone has not finished. */
  forget(from: string): void {
    this.#begun.delete(from);
  }

  #takePart(from: string, numbers: readonly number[], text: string): Unframed | undefined {
    const [no = Number.NaN, part = Number.NaN, parts = Number.NaN] = numbers;
    if (!(parts >= 1 && parts * frameBytesMax <= 2 * messageCharsMax)) return undefined;
    const before = this.#begun.get(from);
    const begun = part === 0 ? { no, parts, texts: [] } : before;
    if (begun?.no !== no || begun.parts !== parts || begun.texts.length !== part) {
      this.#begun.delete(from);
      return undefined;
    }
    begun.texts.push(text);
    if (begun.texts.length < parts) {
      this.#begun.set(from, begun);
      return undefined;
    }
    this.#begun.delete(from);
    return { from, texts: [begun.texts.join("")] };
  }
}
