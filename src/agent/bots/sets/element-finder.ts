// Finds which element of a set holds an address, and since when. It reads agent.db when an operator asks, so
// that nothing is kept for it. Names and ranges are the key there, so it takes one look-up for each prefix
// length.

import { familyBits, formatIp, parseIp } from "../../../core/addresses/ip.ts";
import type { SetRef } from "../../../core/serving/verdict.ts";
import type { Sqlite, Statement } from "../../../base/sqlite.ts";

export type FoundElement = { readonly range: string; readonly since: Date | undefined };
export type SetFacts = {
  readonly host: string;
  readonly kind: SetRef["kind"];
  readonly version: number;
  readonly count: number;
  readonly changedAt: Date | undefined;
};

type ElementRow = { readonly range: string; readonly added_at: number | null };
type SetRow = Omit<SetFacts, "changedAt"> & { readonly changed_at: number | null };

export class ElementFinder {
  readonly #element: Statement<
    [host: string, kind: string, bot: string, range: string],
    ElementRow
  >;
  readonly #set: Statement<[host: string, kind: string], SetRow>;
  readonly #sets: Statement<[], SetRow>;

  constructor(db: Sqlite) {
    this.#element = db.prepare(
      "SELECT range, added_at FROM bot_element WHERE host = ? AND kind = ? AND bot = ? AND range = ?",
    );
    this.#set = db.prepare(
      "SELECT host, kind, version, count, changed_at FROM bot_set WHERE host = ? AND kind = ?",
    );
    this.#sets = db.prepare(
      "SELECT host, kind, version, count, changed_at FROM bot_set ORDER BY host, kind",
    );
  }

  /** Returns the most specific element of the bot that holds the address; undefined if none does any more. */
  element(
    { host, kind }: Pick<SetRef, "host" | "kind">,
    bot: string,
    ip: string,
  ): FoundElement | undefined {
    for (const range of rangesAround(ip)) {
      const row = this.#element.get(host, kind, bot, range);
      if (row !== undefined) return { range, since: dateOf(row.added_at) };
    }
    return undefined;
  }

  /** Returns the facts of a set as it is committed. */
  set({ host, kind }: Pick<SetRef, "host" | "kind">): SetFacts | undefined {
    const row = this.#set.get(host, kind);
    return row === undefined ? undefined : factsOf(row);
  }

  sets(): readonly SetFacts[] {
    return this.#sets.all().map((row) => factsOf(row));
  }
}

function factsOf({ changed_at: at, ...set }: SetRow): SetFacts {
  return { ...set, changedAt: dateOf(at) };
}

function dateOf(seconds: number | null): Date | undefined {
  return seconds === null ? undefined : new Date(seconds * 1_000);
}

/**
 * Returns the ranges as elements write them, the most specific first: the address alone, then each network
 * that holds it.
 */
function rangesAround(ip: string): readonly string[] {
  const address = parseIp(ip);
  if (address === undefined) return [];
  const { family, value } = address;
  const bits = familyBits[family];
  const texts = [formatIp(address)];
  for (let prefix = bits; prefix >= 0; prefix--) {
    const below = BigInt(bits - prefix);
    texts.push(`${formatIp({ family, value: (value >> below) << below })}/${prefix}`);
  }
  return texts;
}
