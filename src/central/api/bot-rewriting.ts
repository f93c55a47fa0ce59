// Marks or removes thousands of elements in steps: one transaction for all of them would keep every other
// customer waiting for seconds.
//
// First it is found out, a part at a time, which of the elements the bot already holds. If few are left to
// change, it is a change like any other. Otherwise what the bot is to hold is written beside it, and one
// short transaction puts it in force, with the audit line and the answer for a repetition.

import { setImmediate } from "node:timers/promises";
import { formatRange, type IpRange } from "../../core/addresses/ip.ts";
import type { Context } from "./http/endpoint.ts";
import type { BotRewrite } from "../store/bots/bot-rewrite.ts";
import type { BotHeld } from "../store/bots/bot-versions.ts";
import type { BotPlace } from "../store/bots/bot-versions.ts";
import { beginRewrite, copyHeld, stageElements, whichHeld } from "../store/bots/bot-rewrite.ts";

/** The most elements written or removed in one transaction, which others wait for some 50 ms. */
export const elementsAtOnce = 2_000;
const rangesPerPart = 500;

export type Prepared = {
  readonly rewrite: BotRewrite;
  /** All that the bot is to hold, where that was asked for. */
  readonly texts: readonly string[];
  readonly change: { readonly added: readonly string[]; readonly removed: readonly string[] };
};

type Prepare = Context["prepare"];

/** Divides ranges into those that the bot holds and those that it does not. */
export async function divided(
  prepare: Prepare,
  bot: BotHeld | undefined,
  ranges: readonly IpRange[],
): Promise<{ readonly held: readonly IpRange[]; readonly fresh: readonly IpRange[] }> {
  if (bot === undefined || bot.count === 0) return { held: [], fresh: ranges };
  const [held, fresh]: [IpRange[], IpRange[]] = [[], []];
  for (const part of partsOf(ranges)) {
    const texts = part.map((range) => formatRange(range));
    const known = new Set(await prepare(async (work) => whichHeld(work, bot.id, texts)));
    for (const [at, range] of part.entries())
      (known.has(texts[at] ?? "") ? held : fresh).push(range);
    await setImmediate();
  }
  return { held, fresh };
}

/**
 * Writes beside the bot what it is to hold: what it holds now without the ranges to be removed, and the
 * ranges to be added.
 */
export async function prepareRewrite(
  prepare: Prepare,
  place: BotPlace,
  {
    add = [],
    remove = [],
  }: { readonly add?: readonly IpRange[]; readonly remove?: readonly IpRange[] },
  hasTexts = true,
): Promise<Prepared> {
  const without = await textsOf(remove);
  let rewrite = await prepare(async (work) => beginRewrite(work, place));
  const [texts, removed]: [string[], string[]] = [[], []];
  let after: string | undefined = (rewrite.before?.count ?? 0) === 0 ? undefined : "";
  while (after !== undefined) {
    const from = { bot: place.bot, after, without };
    const copied = await prepare(async (work) => copyHeld(work, rewrite, from));
    rewrite = copied.rewrite;
    if (hasTexts) texts.push(...copied.texts);
    removed.push(...copied.left);
    after = copied.last;
    await setImmediate();
  }
  const added: string[] = [];
  for (const part of partsOf(add)) {
    const staged = await prepare(async (work) => stageElements(work, rewrite, place.bot, part));
    rewrite = staged.rewrite;
    added.push(...staged.texts);
    await setImmediate();
  }
  return { rewrite, texts: hasTexts ? [...texts, ...added] : [], change: { added, removed } };
}

function* partsOf(ranges: readonly IpRange[]): Generator<readonly IpRange[]> {
  for (let at = 0; at < ranges.length; at += rangesPerPart)
    yield ranges.slice(at, at + rangesPerPart);
}

async function textsOf(ranges: readonly IpRange[]): Promise<ReadonlySet<string>> {
  const texts = new Set<string>();
  for (const part of partsOf(ranges)) {
    for (const range of part) texts.add(formatRange(range));
    await setImmediate();
  }
  return texts;
}
