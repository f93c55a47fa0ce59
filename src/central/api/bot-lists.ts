// `/bots/{list}/{bot}/addresses/`: what a bot holds, at its real size. It is read by the page, replaced as a whole by a list that comes in as a stream, and changed in bulk.
// Each change is one version of the set, however many addresses it has.

import { AccelError } from "../../core/faults.ts";
import { RangeJsonReader } from "../../core/addresses/range-json.ts";
import { ListFormFault, RangeListReader, type LineFault } from "../../core/addresses/range-list.ts";
import { shrinkFault } from "../../core/addresses/shrink-guard.ts";
import { vipRefusal } from "../../core/addresses/range-limits.ts";
import {
  botAddressesShape,
  botChangeMax,
  botEditParameters,
  botListChangeShape,
  botListEdit,
  botListMax,
  botPageLimit,
  botPageMax,
  botPageParameters,
  botReplaceParameters,
  type BotAddresses,
  type BotListChange,
} from "../../wire/customer/bot-list.ts";
import { gives } from "../../wire/customer/operation.ts";
import { optionalWaitParameter } from "../../wire/customer/proof.ts";
import { customerApiPrefix } from "../../wire/customer/shape.ts";
import type { BotSet } from "../../wire/journal.ts";
import { dropRewrite, heldBot } from "../store/bots/bot-rewrite.ts";
import { putReplacement, type StagedOutcome } from "../store/bots/bot-staged.ts";
import {
  beginStaging,
  differenceOf,
  elementPage,
  listParts,
  stageList,
  type ListDifference,
  type ListReader,
  type Staged,
  type Staging,
} from "../store/bots/bot-staging.ts";
import { findSet, type BotHeld, type BotPlace } from "../store/bots/bot-versions.ts";
import type { Work } from "../store/engine/work.ts";
import type { Actor } from "../store/people/tokens.ts";
import { editBot } from "./bot-edit.ts";
import { botNamed, noBot, botPlaceOf, type BotNamed } from "./bot-place.ts";
import { customerIsFull, isCustomerFull, type Marks } from "./bot-marks.ts";
import type { Ports } from "./deps.ts";
import {
  conflict,
  invalid,
  isGood,
  ok,
  problem,
  tooMany,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { centralStops } from "./http/failure-answer.ts";
import { forUsers, type Endpoint, type EndpointCall } from "./http/endpoint.ts";
import { isProblem } from "./http/path-values.ts";
import { preconditionFault, tagOf } from "./http/precondition.ts";
import { provedMarks } from "./mark-answer.ts";
import { waitFault } from "./proof-wait.ts";

const path = "/bots/:list/:bot/addresses/";
/** The most lists that are taken in at a time, some 50 MB each; one of a customer. */
const listsAtOnce = 4;
const laterMs = 5_000;
/** What a list counts against the limit of marks. */
const listWeight = 100;
const faultsMax = 1_000;
/** How often what the bot holds is held against the list; it may be changed meanwhile. */
const attemptsMax = 3;

type Call = EndpointCall<unknown, Actor>;

/** Customers whose lists are being taken in. */
export class ListsTakenIn {
  readonly #customers = new Set<number>();

  /** Returns why not now, or how to end. */
  begin(customerId: number): ProblemAnswer | { readonly end: () => void } {
    if (this.#customers.has(customerId))
      return tooMany("a list of this customer is being taken in", laterMs);
    if (this.#customers.size >= listsAtOnce)
      return tooMany("too many lists are being taken in", laterMs);
    this.#customers.add(customerId);
    return { end: () => void this.#customers.delete(customerId) };
  }
}

export function botListEndpoints(marks: Marks, ports: Ports): readonly Endpoint[] {
  const takenIn = new ListsTakenIn();
  const finish = async (call: Call, answer: Answer): Promise<Answer> => proved(call, answer, ports);
  const wait = optionalWaitParameter;
  return [
    forUsers({
      method: "GET",
      path,
      id: "getBotAddresses",
      needs: { role: "read", scope: "domain" },
      summary: "Read the addresses and ranges of one bot, a page at a time",
      gives: gives(botAddressesShape),
      refuses: [404],
      isTagged: true,
      query: botPageParameters,
      handle: readPage,
    }),
    forUsers({
      method: "PUT",
      path,
      id: "replaceBotAddresses",
      needs: { role: "write", scope: "domain" },
      summary: "Replace all addresses and ranges of a bot by a list of up to a million",
      gives: gives(botListChangeShape),
      refuses: [404, 409, 412, 429],
      isTagged: true,
      query: { ...botReplaceParameters, wait },
      takesStream: "addresses",
      handle: async (call) => queryFault(call) ?? takeIn(call, marks, takenIn),
      finish,
    }),
    forUsers({
      method: "POST",
      path,
      id: "changeBotAddresses",
      needs: { role: "write", scope: "domain" },
      summary: "Add and remove addresses and ranges of a bot in bulk",
      gives: gives(botListChangeShape),
      refuses: [404, 412, 429],
      isTagged: true,
      query: { ...botEditParameters, wait },
      body: botListEdit,
      bodyBytesMax: 2 * botChangeMax * 64,
      handle: async (call) => {
        const fault = queryFault(call);
        if (fault !== undefined) return fault;
        const named = botNamed(call);
        return isProblem(named)
          ? named
          : editBot(call, named.set, async (work) => botPlaceOf(work, call, named), marks);
      },
      finish,
    }),
  ];
}

function queryFault({ query }: Call): ProblemAnswer | undefined {
  for (const name of ["dry_run", "allow_shrink"]) {
    const value = query.get(name);
    if (value !== null && value !== "true" && value !== "false")
      return invalid([{ path: `?${name}`, message: "must be true or false" }]);
  }
  return query.has("wait") ? waitFault(query) : undefined;
}

async function readPage(call: Call): Promise<Answer> {
  const { query, read } = call;
  const named = botNamed(call);
  if (isProblem(named)) return named;
  const limit = botPageLimit(query.get("limit"));
  if (limit === undefined)
    return invalid([{ path: "?limit", message: `must be 1 to ${botPageMax}` }]);
  return read(async (work) => {
    const place = await botPlaceOf(work, call, named);
    if (isProblem(place)) return place;
    const [held, set] = [await heldBot(work, place), await findSet(work, place)];
    if (held === undefined || set === undefined) return noBot(place);
    const texts = await elementPage(work, held.id, query.get("after") ?? "", limit + 1);
    const shown = texts.slice(0, limit);
    const body: BotAddresses = {
      list: place.set,
      bot: place.bot,
      domain: place.host,
      version: set.version,
      count: held.count,
      ip_addresses: [...shown],
    };
    const more = texts.length > limit ? { link: nextLink(place, shown.at(-1) ?? "", limit) } : {};
    return ok(body, { etag: tagOf(held.digest), ...more });
  });
}

function nextLink({ set, bot, host }: BotPlace, after: string, limit: number): string {
  const query = new URLSearchParams({ domain: host, limit: String(limit), after });
  return `<${customerApiPrefix}/bots/${set}/${encodeURIComponent(bot)}/addresses/?${query.toString()}>; rel="next"`;
}

async function takeIn(call: Call, marks: Marks, takenIn: ListsTakenIn): Promise<Answer> {
  const named = botNamed(call);
  if (isProblem(named)) return named;
  const reader = readerOf(call, named.set);
  if ("kind" in reader) return reader;
  const waitMs = marks.limit.take(String(call.actor.customerId), listWeight);
  if (waitMs > 0) return tooMany("too many marks", waitMs);
  const turn = takenIn.begin(call.actor.customerId);
  if (isProblem(turn)) return turn;
  try {
    return await replace(call, named, reader, marks);
  } catch (error) {
    if (error instanceof ListFormFault) return invalid([{ path: "", message: error.message }]);
    if (error instanceof AccelError && error.code === "CONFLICT") return conflict(error.message);
    if (call.gone.aborted && error !== centralStops)
      return problem(408, "the list did not come in whole");
    throw error;
  } finally {
    turn.end();
  }
}

function readerOf({ incoming: { type }, header }: Call, set: BotSet): ListReader | ProblemAnswer {
  const encoding = header("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity")
    return problem(415, `the body must not be encoded (${encoding.slice(0, 40)})`);
  const refusal = set === "vip" ? vipRefusal : undefined;
  if (/^text\/plain\s*(?:;|$)/i.test(type)) return new RangeListReader(refusal);
  if (/^application\/json\s*(?:;|$)/i.test(type)) return new RangeJsonReader(refusal);
  return problem(
    415,
    "the body must be text/plain, an address or range a line, or application/json, an array of them",
  );
}

async function replace(
  call: Call,
  named: BotNamed,
  reader: ListReader,
  marks: Marks,
): Promise<Answer> {
  const { prepare, incoming, gone } = call;
  const begun = await prepare(async (work) => {
    const place = await botPlaceOf(work, call, named);
    if (isProblem(place)) return place;
    const fault = preconditionFault(call.header, await heldBot(work, place));
    return fault ?? { place, staging: await beginStaging(work, place) };
  });
  if (isProblem(begun)) return begun;
  const { place, staging } = begun;
  try {
    const staged = await stageList(prepare, staging, listParts(reader, incoming.bytes), {
      bot: place.bot,
      elementsMax: botListMax,
      faultsMax,
      signal: gone,
    });
    switch (staged.kind) {
      case "faults":
        return faulty(staged.faults, staged.count, reader);
      case "too-many":
        return problem(413, `a bot holds at most ${botListMax} addresses and ranges`);
      case "staged":
        return await put(call, named, { ...staging, ...staged.staged }, marks);
      default:
        return staged satisfies never;
    }
  } finally {
    await prepare(async (work) => dropRewrite(work, staging));
  }
}

/** Names every faulty line, or as many as anybody reads. */
function faulty(faults: readonly LineFault[], count: number, reader: ListReader): ProblemAnswer {
  const isJson = reader instanceof RangeJsonReader;
  const errors = faults.map(({ line, reason }) => ({
    path: isJson ? `/${line - 1}` : `line ${line}`,
    message: reason,
  }));
  const [first] = errors;
  const more = count > 1 ? ` (and ${count - 1} more)` : "";
  return problem(400, `the list is not valid: ${first?.path}: ${first?.message}${more}`, {
    errors,
  });
}

/** Puts what was written in force, or says what that would do. */
async function put(
  call: Call,
  named: BotNamed,
  staged: Staging & Staged,
  marks: Marks,
): Promise<Answer> {
  const { query, prepare, read, change } = call;
  const meanwhile = conflict("the bot is being changed by others; send the list again");
  for (let attempt = 1; ; attempt++) {
    const found = await read(async (work) => foundBot(work, call, named));
    if (isProblem(found)) return found;
    const difference = await differenceOf(prepare, named.bot, found.held, staged);
    const refusal = shrinkRefusal(query, difference, staged);
    if (query.get("dry_run") === "true") return dryAnswer(found, staged, difference, refusal);
    if (refusal !== undefined) return conflict(refusal);
    const answer = await change(
      async (work) => {
        const now = await foundBot(work, call, named);
        if (isProblem(now)) return now;
        const outcome = await putReplacement(work, now.place, staged, difference);
        if (outcome === undefined) return meanwhile;
        if (outcome.added > 0 && (await isCustomerFull(work, call.actor, marks, 0)))
          return customerIsFull(marks);
        return changed(now.place, outcome, staged, difference.samples);
      },
      auditedOf(query, staged, difference),
    );
    if (answer !== meanwhile || attempt === attemptsMax) return answer;
  }
}

type FoundBot = {
  readonly place: BotPlace;
  readonly held: BotHeld | undefined;
  readonly version: number;
};

async function foundBot(
  work: Work,
  call: Call,
  named: BotNamed,
): Promise<FoundBot | ProblemAnswer> {
  const place = await botPlaceOf(work, call, named);
  if (isProblem(place)) return place;
  const [held, set] = [await heldBot(work, place), await findSet(work, place)];
  return preconditionFault(call.header, held) ?? { place, held, version: set?.version ?? 0 };
}

function shrinkRefusal(
  query: URLSearchParams,
  { before, removed }: ListDifference,
  { count }: Staged,
): string | undefined {
  if (query.get("allow_shrink") === "true") return undefined;
  const fault = shrinkFault(before?.count ?? 0, count, removed);
  return fault === undefined
    ? undefined
    : `${fault}; if that is meant, say so with ?allow_shrink=true`;
}

function dryAnswer(
  { place, version }: FoundBot,
  { count }: Staged,
  { added, removed, samples }: ListDifference,
  refusal: string | undefined,
): Answer {
  return ok({
    list: place.set,
    bot: place.bot,
    domain: place.host,
    version,
    count,
    added,
    removed,
    samples: { added: [...samples.added], removed: [...samples.removed] },
    dry_run: true,
    ...(refusal !== undefined && { refusal }),
  } satisfies BotListChange);
}

function changed(
  { set: list, bot, host: domain }: BotPlace,
  { version, bot_count: count, added, removed }: StagedOutcome,
  { digest }: Staged,
  samples: ListDifference["samples"],
): Answer {
  const told = { added: [...samples.added], removed: [...samples.removed] };
  return ok(
    { list, bot, domain, version, count, added, removed, samples: told } satisfies BotListChange,
    { etag: tagOf(digest) },
  );
}

/** What the audit trail says of a list, which may have a million lines. */
function auditedOf(
  query: URLSearchParams,
  { count, digest }: Staged,
  { added, removed }: ListDifference,
) {
  return { domain: query.get("domain") ?? "", count, added, removed, digest };
}

async function proved(call: Call, answer: Answer, ports: Ports): Promise<Answer> {
  const { actor, query } = call;
  const isDry = query.get("dry_run") === "true";
  if (answer.kind !== "json" || !isGood(answer) || !query.has("wait") || isDry) return answer;
  const body = answer.body as BotListChange; // `changed` or `editBot` made it.
  const place = { customerId: actor.customerId, host: body.domain, set: body.list };
  return { ...answer, body: { ...body, deployments: await provedMarks(call, place, ports) } };
}
