// Marks and removals of addresses: what they weigh, what a bot and a customer may hold, and the answer.

import type { KeyedMutex } from "../../base/mutex.ts";
import type { IpRange } from "../../core/addresses/ip.ts";
import { sortedRangeTexts } from "../../core/addresses/range-texts.ts";
import { botListMax } from "../../wire/customer/bot-list.ts";
import type { BotRecord } from "../../wire/customer/bot.ts";
import { isTrue } from "../../wire/customer/shape.ts";
import type { BotSet } from "../../wire/journal.ts";
import {
  conflict,
  invalid,
  isGood,
  notFound,
  ok,
  tooMany,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { parseMarkedRange, parseRemovedRange } from "./bot-range.ts";
import { divided, elementsAtOnce, prepareRewrite, type Prepared } from "./bot-rewriting.ts";
import type { EndpointCall } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";
import type { BotHeld } from "../store/bots/bot-versions.ts";
import type { BotPlace } from "../store/bots/bot-versions.ts";
import type { RateLimit } from "../agents/rate-limit.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { HostRow } from "../store/content/domains.ts";
import { overlappingElements } from "../store/bots/bot-checks.ts";
import { attachElements, detachElements } from "../store/bots/bots.ts";
import { dropRewrite, heldBot, putRewrite } from "../store/bots/bot-rewrite.ts";
import { customerElements } from "../store/bots/bot-elements.ts";
import { listBotRecords } from "../store/bots/bot-records.ts";
import type { Work } from "../store/engine/work.ts";

/** What all marks and removals share. */
export type Marks = {
  readonly limit: RateLimit;
  /** The most elements of a customer. */
  readonly elementsMax: number;
  /** Lets changes of thousands of elements run one at a time for each customer. */
  readonly turns: KeyedMutex<number>;
};

/** The most elements of a bot by marks, whose answers list them all, but for one custom range. */
const botElementsMax = 10_000;
/** The most elements of a custom range. */
const rangeElementsMax = 65_536;
const overlapsShown = 20;
/**
 * How many elements count as one request: an element takes some 30 µs of the store, a tenth of what a request
 * takes.
 */
const elementsPerToken = 10;
/** How often a change is tried; a bot may be changed while it is written anew. */
const attemptsMax = 3;

type Flag = { is_custom_ip_range?: Parameters<typeof isTrue>[0] };
type Marked = EndpointCall<Flag & { attach_to_bot: string; attach_to_domain: string }, Actor>;
type Removed = EndpointCall<Flag & { remove_from_bot: string; remove_from_domain: string }, Actor>;
type Found = { readonly host: HostRow; readonly place: BotPlace };

/** What a mark attaches or a removal takes away, and the transactions in which it does so. */
type Asked = {
  readonly call: Pick<EndpointCall<unknown, Actor>, "actor" | "read" | "prepare" | "change">;
  readonly marks: Marks;
  readonly elements: readonly IpRange[];
  readonly whole: IpRange;
  readonly text: string;
  readonly find: (work: Work) => Promise<Found | ProblemAnswer>;
};

export function badRange(reason: string): ProblemAnswer {
  return invalid([{ path: "range", message: reason }]);
}

export async function attach(call: Marked, set: BotSet, marks: Marks): Promise<Answer> {
  const { actor, body, param } = call;
  const isCustom = isTrue(body.is_custom_ip_range);
  const parsed = parseMarkedRange(param("range"), { set, isCustom });
  if (!parsed.ok) return badRange(parsed.reason);
  const waitMs = marks.limit.take(String(actor.customerId), weightOf(parsed.elements));
  if (waitMs > 0) return tooMany("too many marks", waitMs);
  const find = finder(actor, set, body.attach_to_domain, "/attach_to_domain", body.attach_to_bot);
  const asked: Asked = { ...parsed, call, marks, find };
  return parsed.elements.length <= elementsAtOnce
    ? attachAtOnce(asked, parsed.elements)
    : marks.turns.run(actor.customerId, async () => attachMany(asked));
}

export async function detach(call: Removed, set: BotSet, marks: Marks): Promise<Answer> {
  const { actor, body, param } = call;
  const isCustom = isTrue(body.is_custom_ip_range);
  const parsed = parseRemovedRange(param("range"), { set, isCustom });
  if (!parsed.ok) return badRange(parsed.reason);
  const waitMs = marks.limit.take(String(actor.customerId), weightOf(parsed.elements));
  if (waitMs > 0) return tooMany("too many removals", waitMs);
  const { remove_from_domain: domain, remove_from_bot: bot } = body;
  const find = finder(actor, set, domain, "/remove_from_domain", bot);
  const asked: Asked = { ...parsed, call, marks, find };
  return parsed.elements.length <= elementsAtOnce
    ? detachAtOnce(asked, parsed.elements)
    : marks.turns.run(actor.customerId, async () => detachMany(asked));
}

export function weightOf(elements: readonly IpRange[]): number {
  return Math.ceil(elements.length / elementsPerToken);
}

function finder(
  actor: Actor,
  set: BotSet,
  domain: string,
  path: string,
  bot: string,
): Asked["find"] {
  return async (work) => {
    const host = await hostNamed(work, actor, domain, path);
    if (isProblem(host)) return host;
    return { host, place: { domainId: host.domainId, host: host.host, set, bot } };
  };
}

async function attachAtOnce(asked: Asked, elements: readonly IpRange[]): Promise<Answer> {
  const { call, find } = asked;
  return call.change(async (work) => {
    const found = await find(work);
    if (isProblem(found)) return found;
    const { place } = found;
    const attached = await attachElements(work, place, elements, botElementsMax);
    if (attached.outcome === "full") return botIsFull(place, attached.count);
    if (attached.added > 0 && (await isOver(work, asked, 0))) return customerIsFull(asked.marks);
    return marked(work, asked, found, await record(work, call.actor, place.set, attached.botId));
  });
}

async function attachMany(asked: Asked): Promise<Answer> {
  const { call, elements, marks } = asked;
  return rewriting(asked, async (place, bot) => {
    const { fresh } = await divided(call.prepare, bot, elements);
    if (fresh.length <= elementsAtOnce) return attachAtOnce(asked, fresh);
    const count = bot?.count ?? 0;
    if (count > 0 && count + fresh.length > botElementsMax) return botIsFull(place, count);
    if (await call.read(async (work) => isOver(work, asked, fresh.length)))
      return customerIsFull(marks);
    return { add: fresh };
  });
}

async function detachAtOnce(asked: Asked, elements: readonly IpRange[]): Promise<Answer> {
  const { call, find, text } = asked;
  return call.change(async (work) => {
    const found = await find(work);
    if (isProblem(found)) return found;
    const { place } = found;
    const detached = await detachElements(work, place, elements, asked.elements);
    switch (detached.outcome) {
      case "no-bot":
        return notFound(`bot ${JSON.stringify(place.bot)} in this list of ${place.host}`);
      case "not-attached":
        return notFound(`${text} at ${place.bot}`);
      case "covered":
        return conflict(
          `${text} is covered by ${detached.by}, which is attached as a whole: remove that element`,
        );
      case "detached":
        return ok(await record(work, call.actor, place.set, detached.botId));
      default:
        return detached satisfies never;
    }
  });
}

async function detachMany(asked: Asked): Promise<Answer> {
  const { call, elements } = asked;
  return rewriting(asked, async (_place, bot) => {
    const { held } = await divided(call.prepare, bot, elements);
    // A removal does not write anew what came as a list, perhaps a million elements.
    const isLarge = (bot?.count ?? 0) > rangeElementsMax;
    return held.length <= elementsAtOnce || isLarge ? detachAtOnce(asked, held) : { remove: held };
  });
}

type Elements = { readonly add?: readonly IpRange[]; readonly remove?: readonly IpRange[] };

/**
 * Changes a bot by writing it anew. `plan` answers, or says what is added to the bot or removed from it. That
 * is prepared and put in force, unless the bot was changed meanwhile.
 */
async function rewriting(
  asked: Asked,
  plan: (place: BotPlace, bot: BotHeld | undefined) => Promise<Answer | Elements>,
): Promise<Answer> {
  const { call, find } = asked;
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const begun = await call.read(async (work) => {
      const found = await find(work);
      if (isProblem(found)) return found;
      return { ...found, bot: await heldBot(work, found.place) };
    });
    if (isProblem(begun)) return begun;
    const planned = await plan(begun.place, begun.bot);
    if ("kind" in planned) return planned;
    const prepared = await prepareRewrite(call.prepare, begun.place, planned);
    const answer = await put(asked, prepared, planned.add !== undefined);
    if (answer !== undefined) return answer;
  }
  return conflict("the bot is being changed by others; send the request again");
}

/** Puts a rewrite in force. Returns undefined if the bot is a different one by now. */
async function put(asked: Asked, prepared: Prepared, isMark: boolean): Promise<Answer | undefined> {
  const { call, find, marks } = asked;
  const { rewrite, texts, change } = prepared;
  const ip_addresses = [...sortedRangeTexts(texts)];
  const meanwhile = conflict("the bot was changed meanwhile");
  const answer = await call.change(async (work) => {
    const found = await find(work);
    if (isProblem(found)) return found;
    const { place } = found;
    if (!(await putRewrite(work, place, rewrite, change))) return meanwhile;
    if (isMark && (await isOver(work, asked, 0))) return customerIsFull(marks);
    const bot = { id: rewrite.botId, name: place.bot, domain: place.host, ip_addresses };
    return isMark ? marked(work, asked, found, bot) : ok(bot);
  });
  if (!isGood(answer)) await call.prepare(async (work) => dropRewrite(work, rewrite));
  return answer === meanwhile ? undefined : answer;
}

async function isOver(work: Work, { call, marks }: Asked, more: number): Promise<boolean> {
  return isCustomerFull(work, call.actor, marks, more);
}

/** Whether the customer's bots hold more than they may, or would with so many more. */
export async function isCustomerFull(
  work: Work,
  { customerId }: Pick<Actor, "customerId">,
  { elementsMax }: Pick<Marks, "elementsMax">,
  more: number,
): Promise<boolean> {
  return (await customerElements(work, customerId)) + more > elementsMax;
}

export function listIsFull({ bot }: BotPlace, count: number): ProblemAnswer {
  return conflict(`${bot} holds ${count} addresses and ranges, at most ${botListMax}`);
}

function botIsFull({ bot }: BotPlace, count: number): ProblemAnswer {
  return conflict(
    `${bot} holds ${count} addresses and ranges, at most ${botElementsMax} by marks: PUT or POST /bots/{list}/{bot}/addresses/ takes a million`,
  );
}

export function customerIsFull({ elementsMax }: Pick<Marks, "elementsMax">): ProblemAnswer {
  return conflict(
    `the bots of a customer hold at most ${elementsMax} addresses and ranges: remove some, or attach CIDR ranges in place of addresses`,
  );
}

async function record(
  work: Work,
  actor: Actor,
  set: BotSet,
  botId: number,
): Promise<BotRecord | undefined> {
  const [bot] = await listBotRecords(work, actor, set, { after: botId - 1, limit: 1 });
  return bot;
}

/** Answers with the bot, and with what the other list has of the range. */
async function marked(
  work: Work,
  { whole }: Asked,
  { host, place }: Found,
  bot: BotRecord | undefined,
): Promise<Answer> {
  const other = place.set === "bad" ? "vip" : "bad";
  const also = await overlappingElements(work, host, other, whole, overlapsShown);
  return ok({ ...bot, ...(also.length > 0 && { also_in: also }) });
}
