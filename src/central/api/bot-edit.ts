// Adds and removes addresses of a bot in bulk, as one version. Few of them are one short transaction; thousands are written beside what the bot holds
// (bot-rewriting.ts).

import type { IpRange } from "../../core/addresses/ip.ts";
import { RangeReader } from "../../core/addresses/range-list.ts";
import { vipRefusal } from "../../core/addresses/range-limits.ts";
import type { BotListChange } from "../../wire/customer/bot-list.ts";
import type { ProblemError } from "../../wire/customer/problem.ts";
import type { BotSet } from "../../wire/journal.ts";
import { dropRewrite, heldBot, putRewrite } from "../store/bots/bot-rewrite.ts";
import { editElements, type Edited } from "../store/bots/bots.ts";
import { findSet, type BotHeld, type BotPlace } from "../store/bots/bot-versions.ts";
import type { Work } from "../store/engine/work.ts";
import type { Actor } from "../store/people/tokens.ts";
import { customerIsFull, isCustomerFull, listIsFull, weightOf, type Marks } from "./bot-marks.ts";
import { divided, elementsAtOnce, prepareRewrite } from "./bot-rewriting.ts";
import {
  conflict,
  invalid,
  isGood,
  ok,
  tooMany,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import type { EndpointCall } from "./http/endpoint.ts";
import { isProblem } from "./http/path-values.ts";
import { preconditionFault, tagOf } from "./http/precondition.ts";
import { botListMax } from "../../wire/customer/bot-list.ts";

type Edit = { readonly add?: readonly string[]; readonly remove?: readonly string[] };
type Call = EndpointCall<Edit, Actor>;
type FindPlace = (work: Work) => Promise<BotPlace | ProblemAnswer>;
type Ranges = { readonly add: readonly IpRange[]; readonly remove: readonly IpRange[] };

const attemptsMax = 3;

export async function editBot(
  call: Call,
  set: BotSet,
  find: FindPlace,
  marks: Marks,
): Promise<Answer> {
  const errors: ProblemError[] = [];
  const add = rangesOf(call.body.add, "add", errors, set === "vip" ? vipRefusal : undefined);
  const remove = rangesOf(call.body.remove, "remove", errors);
  const both = [...remove.keys()].filter((text) => add.has(text));
  for (const text of both)
    errors.push({ path: "/remove", message: `${text} is to be added as well` });
  if (errors.length > 0) return invalid(errors);
  const ranges = { add: [...add.values()], remove: [...remove.values()] };
  const waitMs = marks.limit.take(
    String(call.actor.customerId),
    weightOf([...ranges.add, ...ranges.remove]),
  );
  if (waitMs > 0) return tooMany("too many marks", waitMs);
  return ranges.add.length + ranges.remove.length <= elementsAtOnce
    ? editAtOnce(call, find, ranges, marks)
    : marks.turns.run(call.actor.customerId, async () => editMany(call, find, ranges, marks));
}

/** The ranges by their texts, each once. */
function rangesOf(
  texts: readonly string[] = [],
  field: string,
  errors: ProblemError[],
  refusal: typeof vipRefusal = () => undefined,
): ReadonlyMap<string, IpRange> {
  const reader = new RangeReader();
  const found = new Map<string, IpRange>();
  for (const [at, text] of texts.entries()) {
    const listed = reader.read(text.trim());
    const reason = typeof listed === "string" ? listed : refusal(listed);
    if (reason !== undefined) errors.push({ path: `/${field}/${at}`, message: reason });
    else if (typeof listed !== "string") found.set(listed.text, listed.range);
  }
  return found;
}

async function editAtOnce(
  call: Call,
  find: FindPlace,
  { add, remove }: Ranges,
  marks: Marks,
): Promise<Answer> {
  return call.change(async (work) => {
    const place = await find(work);
    if (isProblem(place)) return place;
    const fault = preconditionFault(call.header, await heldBot(work, place));
    if (fault !== undefined) return fault;
    const edited = await editElements(work, place, add, remove, botListMax);
    if (edited.outcome === "full") return listIsFull(place, edited.count);
    return edited.added > 0 && (await isCustomerFull(work, call.actor, marks, 0))
      ? customerIsFull(marks)
      : changed(work, place, edited, remove.length);
  });
}

async function editMany(
  call: Call,
  find: FindPlace,
  { add, remove }: Ranges,
  marks: Marks,
): Promise<Answer> {
  const { prepare, read, change, header } = call;
  const meanwhile = conflict("the bot is being changed by others; send the request again");
  for (let attempt = 1; ; attempt++) {
    const begun = await read(async (work) => {
      const place = await find(work);
      if (isProblem(place)) return place;
      const held = await heldBot(work, place);
      return preconditionFault(header, held) ?? { place, held };
    });
    if (isProblem(begun)) return begun;
    const { place, held } = begun;
    const { fresh } = await divided(prepare, held, add);
    const { held: present } = await divided(prepare, held, remove);
    const count = (held?.count ?? 0) + fresh.length - present.length;
    if (count > botListMax) return listIsFull(place, held?.count ?? 0);
    if (fresh.length + present.length <= elementsAtOnce)
      return editAtOnce(call, find, { add: fresh, remove }, marks);
    const wanted = { add: fresh, remove: present };
    const { rewrite, change: difference } = await prepareRewrite(prepare, place, wanted, false);
    const answer = await change(async (work) => {
      const now = await find(work);
      if (isProblem(now)) return now;
      if (!(await putRewrite(work, now, rewrite, difference))) return meanwhile;
      if (fresh.length > 0 && (await isCustomerFull(work, call.actor, marks, 0)))
        return customerIsFull(marks);
      const edited = { added: fresh.length, removed: present.length, held: rewrite };
      return changed(work, now, edited, remove.length);
    });
    if (!isGood(answer)) await prepare(async (work) => dropRewrite(work, rewrite));
    if (answer !== meanwhile || attempt === attemptsMax) return answer;
  }
}

async function changed(
  work: Work,
  place: BotPlace,
  {
    added,
    removed,
    held,
  }: Pick<Extract<Edited, { outcome: "edited" }>, "added" | "removed"> & {
    readonly held: Pick<BotHeld, "count" | "digest">;
  },
  toRemove: number,
): Promise<Answer> {
  const set = await findSet(work, place);
  const body: BotListChange = {
    list: place.set,
    bot: place.bot,
    domain: place.host,
    version: set?.version ?? 0,
    count: held.count,
    added,
    removed,
    absent: toRemove - removed,
  };
  return ok(body, { etag: tagOf(held.digest) });
}
