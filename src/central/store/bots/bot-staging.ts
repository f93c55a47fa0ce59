// A list of any length is written beside what is in force, and what it would change is found out. Each transaction takes milliseconds; nothing is in force before one
// more puts it there (bot-staged.ts).
//
//   begin     a bot that is not there gets a number; the sweeper leaves it alone for a while, which is said anew as the list comes in
//   stage     elements are written under that number, in order of address
//   differ    what the bot holds is held against it, a page at a time
// Whatever ends it before leaves elements that are swept once the number is not held any more.

import { setImmediate } from "node:timers/promises";
import { RangeBuckets } from "../../../core/addresses/range-buckets.ts";
import type { LineFault, ListedRange, ListPart } from "../../../core/addresses/range-list.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import { pacedParts, rowsPerStatement } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";
import { inlineElementsMax } from "../journal/links.ts";
import { elementRow } from "./bot-elements.ts";
import { holdNumber, newBotNumber, whichHeld } from "./bot-rewrite.ts";
import {
  openSet,
  type BotHeld,
  type BotPlace,
  type Contents,
  type SetChange,
} from "./bot-versions.ts";

/** Runs a transaction of what is in force for nobody yet. */
export type Transacting = <T>(action: (work: Work) => Promise<T>) => Promise<T>;

/** Elements under the number of a bot that is not there. */
export type Staged = Contents & { readonly botId: number };

export type Staging = { readonly setId: number; readonly botId: number };

/** Held to be put in order, a million of IPv4: an index that is written without order is written as often as it has rows. */
const heldBytesMax = 48 * 1024 * 1024;
/** The most rows of a commit: others wait for it, some 30 ms. */
const rowsPerCommit = 2_000;
/** Between two turns of the event loop, 5 ms. */
const rowsPerTurn = 500;
/** Of each kind. */
const samplesMax = 20;

export async function beginStaging(work: Work, place: BotPlace): Promise<Staging> {
  const { id: setId } = await openSet(work, place);
  const botId = await newBotNumber(work, setId);
  await holdNumber(work, botId);
  return { setId, botId };
}

export type StageOptions = {
  readonly bot: string;
  /** Where the reading stops: no list is good beyond it. */
  readonly elementsMax: number;
  readonly faultsMax: number;
  readonly signal: AbortSignal;
};

export type StageOutcome =
  | { readonly kind: "staged"; readonly staged: Staged }
  /** The first of the faults, and how many there are. */
  | { readonly kind: "faults"; readonly faults: readonly LineFault[]; readonly count: number }
  | { readonly kind: "too-many" };

/** What reads a list: lines of text, or JSON. */
export type ListReader = {
  read(text: string): ListPart;
  end(): ListPart;
  /** Further parts behind the end, of a form that is read whole. */
  more?(): ListPart | undefined;
};

/** Reads a body as it comes. Throws what the reader throws, and what the body does. */
export async function* listParts(
  reader: ListReader,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<ListPart> {
  const decoder = new TextDecoder();
  for await (const chunk of body) yield reader.read(decoder.decode(chunk, { stream: true }));
  const rest = decoder.decode();
  if (rest !== "") yield reader.read(rest);
  yield reader.end();
  for (let part = reader.more?.(); part !== undefined; part = reader.more?.()) yield part;
}

/** Writes a list under the number. Throws what reading it throws, and what the signal says. */
export async function stageList(
  transact: Transacting,
  { setId, botId }: Staging,
  list: AsyncIterable<ListPart>,
  options: StageOptions,
): Promise<StageOutcome> {
  const { bot, elementsMax, faultsMax, signal } = options;
  const buckets = new RangeBuckets();
  const faults: LineFault[] = [];
  let [count, digest, faultCount] = [0, emptySetDigest, 0];
  const write = async (): Promise<void> => {
    for (const ranges of buckets.take(rowsPerCommit)) {
      signal.throwIfAborted();
      const fresh = await transact(async (work) => {
        await holdNumber(work, botId);
        return insert(work, botId, setId, ranges);
      });
      count += fresh.length;
      const elements = fresh.map((range) => ({ bot, range }));
      digest = changedSetDigest(digest, elements, []);
      await setImmediate();
    }
  };
  for await (const { ranges, faults: found } of list) {
    faultCount += found.length;
    faults.push(...found.slice(0, faultsMax - faults.length));
    if (faultCount === 0) for (const listed of ranges) buckets.add(listed);
    if (buckets.bytes >= heldBytesMax) await write();
    if (count > elementsMax) return { kind: "too-many" };
    await setImmediate();
  }
  if (faultCount > 0) return { kind: "faults", faults, count: faultCount };
  await write();
  if (count > elementsMax) return { kind: "too-many" };
  return { kind: "staged", staged: { botId, count, digest } };
}

/** Inserts and returns those that were not there yet. */
async function insert(
  { tx }: Work,
  botId: number,
  setId: number,
  ranges: readonly ListedRange[],
): Promise<readonly string[]> {
  const fresh: string[] = [];
  for await (const part of pacedParts(ranges, rowsPerTurn)) {
    const rows = await tx
      .insertInto("bot_elements")
      .values(part.map(({ text, range }) => elementRow(botId, setId, range, text)))
      .onConflict((conflict) => conflict.doNothing())
      .returning("range")
      .execute();
    fresh.push(...rows.map(({ range }) => range));
  }
  return fresh;
}

/** What a list would change of what a bot holds. */
export type ListDifference = {
  readonly before: BotHeld | undefined;
  readonly added: number;
  readonly removed: number;
  /** Some of each. */
  readonly samples: SetTexts;
  /** All of it, where the journals' entries hold that. */
  readonly change: SetChange | undefined;
};
type SetTexts = { readonly added: readonly string[]; readonly removed: readonly string[] };

export async function differenceOf(
  transact: Transacting,
  bot: string,
  before: BotHeld | undefined,
  { botId, count }: Staged,
): Promise<ListDifference> {
  const fresh = await missing(transact, { from: botId, at: before?.id, kept: inlineElementsMax });
  const removed = (before?.count ?? 0) - (count - fresh.count);
  const gone =
    before === undefined || removed === 0
      ? { texts: [] }
      : await missing(transact, {
          from: before.id,
          at: botId,
          kept: removed <= inlineElementsMax ? removed : samplesMax,
        });
  const isSmall = fresh.count + removed <= inlineElementsMax;
  const named = (range: string): SetElement => ({ bot, range });
  return {
    before,
    added: fresh.count,
    removed,
    samples: {
      added: fresh.texts.slice(0, samplesMax),
      removed: gone.texts.slice(0, samplesMax),
    },
    change: isSmall ? { added: fresh.texts.map(named), removed: gone.texts.map(named) } : undefined,
  };
}

/** Counts the elements of one bot that another does not hold, and returns the first `kept` of them. */
async function missing(
  transact: Transacting,
  {
    from,
    at,
    kept,
  }: { readonly from: number; readonly at: number | undefined; readonly kept: number },
): Promise<{ readonly count: number; readonly texts: readonly string[] }> {
  const texts: string[] = [];
  let count = 0;
  let after: string | undefined = "";
  while (after !== undefined) {
    const page: readonly string[] = await transact(async (work) =>
      elementPage(work, from, after ?? "", rowsPerStatement),
    );
    const held = at === undefined ? [] : await transact(async (work) => whichHeld(work, at, page));
    const known = new Set(held);
    const fresh = page.filter((text) => !known.has(text));
    count += fresh.length;
    texts.push(...fresh.slice(0, kept - texts.length));
    after = page.length < rowsPerStatement ? undefined : page.at(-1);
    await setImmediate();
  }
  return { count, texts };
}

/** So many elements of a bot as texts, in order, behind one of them. */
export async function elementPage(
  { tx }: Work,
  botId: number,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  const rows = await tx
    .selectFrom("bot_elements")
    .select("range")
    .where("bot_id", "=", botId)
    .where("range", ">", after)
    .orderBy("range")
    .limit(limit)
    .execute();
  return rows.map(({ range }) => range);
}
