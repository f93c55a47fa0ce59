// The last decisions against visitors, in columns; a new one takes the place of the oldest. Nothing is
// indexed: a search reads a column from end to end, 100,000 places in some milliseconds.
//
// A place takes 66 bytes, 100,000 places 6.6 MB, and each distinct text is kept once. With a hundred thousand
// different user agents of the longest kind that is kept it is 69 MB in all.

import { AddressReader } from "../../../core/addresses/address-reader.ts";
import { addressText } from "../../../core/addresses/address-text.ts";
import type { Decision } from "../../../core/serving/decision.ts";
import { limitReasons } from "../../../core/limits/limit-verdict.ts";
import { verdictReasons, type SetRef } from "../../../core/serving/verdict.ts";
import type { DecisionLine } from "./decision-teller.ts";

export type KeptDecision = Decision & { readonly id: string };

/** At most 16: half a byte holds the place of one. */
export const keptReasons = [...verdictReasons, ...limitReasons] as const;
/** The visitor was let through. */
const wouldBit = 0x80;
const setKinds = [null, "vip", "bad"] as const;
const setKindShift = 4;
const reasonMask = 0x0f;

const textColumns = ["host", "userAgent", "bot", "setHost", "policyOf", "rule"] as const;

export class DecisionRing {
  readonly capacity: number;
  /** Two words an id, the more significant one first. */
  readonly #ids: Uint32Array;
  readonly #at: Float64Array;
  readonly #families: Uint8Array;
  /** Four words an address. */
  readonly #addresses: Uint32Array;
  /** The reason, the kind of set, and whether the visitor was let through, in one byte. */
  readonly #verdicts: Uint8Array;
  readonly #versions: Float64Array;
  readonly #texts: Readonly<Record<(typeof textColumns)[number], Uint32Array>>;
  readonly #pool = new TextPool();
  readonly #reader = new AddressReader();
  #added = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#ids = new Uint32Array(capacity * 2);
    this.#at = new Float64Array(capacity);
    this.#families = new Uint8Array(capacity);
    this.#addresses = new Uint32Array(capacity * 4);
    this.#verdicts = new Uint8Array(capacity);
    this.#versions = new Float64Array(capacity);
    const column = (): Uint32Array => new Uint32Array(capacity);
    this.#texts = {
      host: column(),
      userAgent: column(),
      bot: column(),
      setHost: column(),
      policyOf: column(),
      rule: column(),
    };
  }

  get size(): number {
    return Math.min(this.#added, this.capacity);
  }

  /** The number of distinct texts that the places refer to. */
  get distinctTexts(): number {
    return this.#pool.size;
  }

  add(line: DecisionLine): void {
    const [id, atMs, host, clientIp, userAgent, kind, reason, bot, ...rest] = line;
    const [setKind, setHost, version, policyOf, rule] = rest;
    const place = this.#added % this.capacity;
    if (this.#added >= this.capacity) this.#forget(place);
    this.#ids[place * 2] = Number.parseInt(id.slice(0, 8), 16);
    this.#ids[place * 2 + 1] = Number.parseInt(id.slice(8), 16);
    this.#at[place] = atMs;
    const family = this.#reader.read(clientIp);
    this.#families[place] = family;
    this.#addresses.set(this.#reader.words, place * 4);
    this.#verdicts[place] =
      keptReasons.indexOf(reason) |
      (setKinds.indexOf(setKind) << setKindShift) |
      (kind.startsWith("would-") ? wouldBit : 0);
    this.#versions[place] = version;
    const texts = { host, userAgent, bot, setHost, policyOf, rule };
    for (const name of textColumns) this.#texts[name][place] = this.#pool.hold(texts[name]);
    this.#added++;
  }

  #forget(place: number): void {
    for (const name of textColumns) this.#pool.release(this.#texts[name][place] ?? 0);
  }

  /** Returns the decision with this id, which is in lower-case hexadecimal. */
  find(id: string): KeptDecision | undefined {
    const high = Number.parseInt(id.slice(0, 8), 16);
    const low = Number.parseInt(id.slice(8), 16);
    for (const place of this.#newestFirst())
      if (this.#ids[place * 2] === high && this.#ids[place * 2 + 1] === low)
        return this.#read(place);
    return undefined;
  }

  /** Returns the newest decisions about this address, newest first, and how many there are in all. */
  about(address: string, limit: number): { total: number; newest: readonly KeptDecision[] } {
    const family = this.#reader.read(address);
    const words = Uint32Array.from(this.#reader.words);
    const wordsUsed = family === 4 ? 1 : 4;
    const newest: KeptDecision[] = [];
    let total = 0;
    for (const place of this.#newestFirst()) {
      if (family === 0 || this.#families[place] !== family) continue;
      let word = 0;
      while (word < wordsUsed && this.#addresses[place * 4 + word] === words[word]) word++;
      if (word < wordsUsed) continue;
      total++;
      if (newest.length < limit) newest.push(this.#read(place));
    }
    // Workers tell theirs in batches, so what came last here need not be what was decided last.
    return { total, newest: newest.sort((a, b) => b.atMs - a.atMs) };
  }

  *#newestFirst(): Generator<number> {
    for (let back = 1; back <= this.size; back++) yield (this.#added - back) % this.capacity;
  }

  #read(place: number): KeptDecision {
    const text = (name: (typeof textColumns)[number]): string | null =>
      this.#pool.text(this.#texts[name][place] ?? 0);
    const verdict = this.#verdicts[place] ?? 0;
    const family = this.#families[place];
    const words = this.#addresses.subarray(place * 4, place * 4 + 4);
    const hex = (word: number): string =>
      (this.#ids[place * 2 + word] ?? 0).toString(16).padStart(8, "0");
    return {
      id: hex(0) + hex(1),
      atMs: this.#at[place] ?? 0,
      host: text("host") ?? "",
      clientIp: family === 4 || family === 6 ? addressText(family, words) : "",
      userAgent: text("userAgent") ?? undefined,
      verdict: this.#verdict(place, verdict, text),
      policyOf: text("policyOf") ?? undefined,
    };
  }

  #verdict(
    place: number,
    packed: number,
    text: (name: (typeof textColumns)[number]) => string | null,
  ): Decision["verdict"] {
    const reason = keptReasons[packed & reasonMask] ?? "not-a-bot";
    const isBlocked = (packed & wouldBit) === 0;
    const bot = text("bot");
    if (reason === "request-rate")
      return { kind: isBlocked ? "limit" : "would-limit", reason, bot, rule: text("rule") ?? "" };
    const set = this.#set(place, packed, text("setHost"));
    return { kind: isBlocked ? "block" : "would-block", reason, bot, set };
  }

  #set(place: number, verdict: number, host: string | null): SetRef | undefined {
    const kind = setKinds[(verdict & ~wouldBit) >> setKindShift] ?? null;
    return kind === null || host === null
      ? undefined
      : { kind, host, version: this.#versions[place] ?? 0 };
  }
}

// Texts by number, each kept once for as long as somebody holds it: a host, bot or user agent that 100,000
// decisions repeat takes the room of one.

type Held = { readonly no: number; readonly text: string; holders: number };

class TextPool {
  readonly #byText = new Map<string, Held>();
  readonly #byNo: (Held | undefined)[] = [undefined];
  readonly #free: number[] = [];

  /** The number of distinct texts held. */
  get size(): number {
    return this.#byText.size;
  }

  /** Returns the number of a text, which is held until it is released as often; 0 stands for no text. */
  hold(text: string | null): number {
    if (text === null) return 0;
    let held = this.#byText.get(text);
    if (held === undefined) {
      const no = this.#free.pop() ?? this.#byNo.length;
      held = { no, text, holders: 0 };
      this.#byText.set(text, held);
      this.#byNo[no] = held;
    }
    held.holders++;
    return held.no;
  }

  text(no: number): string | null {
    return this.#byNo[no]?.text ?? null;
  }

  release(no: number): void {
    const held = this.#byNo[no];
    if (held === undefined || --held.holders > 0) return;
    this.#byText.delete(held.text);
    this.#byNo[no] = undefined;
    this.#free.push(no);
  }
}
