// The operator's import: a list of any length becomes one version of a bot's set. Nothing holds the store for longer than a statement of a thousand rows.
//
//   staging   elements are written under the number of a bot that is not there (`dead_bots` has it), so that nothing of them is in force
//   swap      one short transaction puts that bot where the one of before was, if the list replaces it or there was none
//   merge     into a bot that goes on, its new elements are moved over, in one transaction with turns of the event loop between
//   sweep     what belongs to no bot any more is deleted in the background; a crash in between leaves nothing else behind
// A fault in any line ends it before anything is changed.

import { setImmediate } from "node:timers/promises";
import { AccelError } from "../../../core/faults.ts";
import { RangeBuckets } from "../../../core/addresses/range-buckets.ts";
import {
  RangeListReader,
  type LineFault,
  type ListedRange,
} from "../../../core/addresses/range-list.ts";
import { changedSetDigest, emptySetDigest } from "../../../core/addresses/set-digest.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { recordAudit } from "../people/audit.ts";
import { newBotNumber } from "./bot-rewrite.ts";
import { putStaged, type Staged, type StagedOutcome } from "./bot-staged.ts";
import { pacedParts, rowsPerStatement } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";
import { elementRow } from "./bot-elements.ts";
import { openSet, type BotPlace } from "./bot-versions.ts";
import { deletedRows } from "../engine/counts.ts";
import type { CustomerStore } from "../engine/customer-store.ts";

export type BotImport = {
  /** A main domain or a sub-domain. */
  readonly domain: string;
  /** The customer, where several have the domain. */
  readonly customerId: number | undefined;
  readonly set: BotSet;
  readonly bot: string;
  /** The list takes the place of what the bot holds; else it is added to it. */
  readonly isReplacing: boolean;
  /** The account of the host that asks, as the command says; undefined: it does not. */
  readonly operator: string | undefined;
};

export type BotImported = StagedOutcome & {
  readonly domain: string;
  readonly set: BotSet;
  readonly bot: string;
  readonly lines: number;
};

const faultsShown = 20;
/** Held to be put in order, 200 bytes each: an index that is written without order is written as often as it has rows. */
const heldMax = 250_000;
/** The most rows of a commit: others wait for it, some 30 ms. */
const rowsPerCommit = 2_000;
/** Between two turns of the event loop, 5 ms. */
const rowsPerTurn = 500;

export class BotImports {
  readonly #store: Pick<CustomerStore, "run">;
  readonly #wake: (deploymentSiteIds: readonly number[]) => void;
  /** Being filled: not to be swept. */
  readonly #staging = new Set<number>();

  constructor(
    store: Pick<CustomerStore, "run">,
    wake: (deploymentSiteIds: readonly number[]) => void,
  ) {
    this.#store = store;
    this.#wake = wake;
  }

  /** Throws NOT_FOUND, CONFLICT or LIST_INVALID, and what `body` throws. */
  async run(
    what: BotImport,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<BotImported> {
    const { place, setId, botId, customerId } = await this.#do(async (work) => begin(work, what));
    this.#staging.add(botId);
    try {
      const staged = await this.#stage(botId, setId, what.bot, body, signal);
      const outcome = await this.#do(async (work) => {
        const put = await putStaged(work, place, setId, staged, what.isReplacing);
        await recordImport(work, what, customerId, put);
        return put;
      });
      const { domain, set, bot } = what;
      return { domain, set, bot, lines: staged.lines, ...outcome };
    } finally {
      this.#staging.delete(botId);
    }
  }

  /** Deletes the elements of bots that are no more. */
  async sweep(stop: AbortSignal): Promise<void> {
    const dead = await this.#do(async ({ tx, at }) =>
      tx
        .selectFrom("dead_bots")
        .select("bot_id")
        .where((where) =>
          where.or([where("held_until", "is", null), where("held_until", "<=", at)]),
        )
        .execute(),
    );
    for (const { bot_id: botId } of dead) {
      if (this.#staging.has(botId)) continue;
      while (!stop.aborted && (await this.#do(async (work) => sweepPart(work, botId))))
        await setImmediate();
    }
  }

  async #stage(
    botId: number,
    setId: number,
    bot: string,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<Staged & { readonly lines: number }> {
    const reader = new RangeListReader();
    const buckets = new RangeBuckets();
    const faults: LineFault[] = [];
    let [count, digest] = [0, emptySetDigest];
    const write = async (): Promise<void> => {
      for (const ranges of buckets.take(rowsPerCommit)) {
        signal.throwIfAborted();
        const fresh = await this.#do(async (work) => insert(work, botId, setId, ranges));
        count += fresh.length;
        const elements = fresh.map((range) => ({ bot, range }));
        digest = changedSetDigest(digest, elements, []);
        await setImmediate();
      }
    };
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      const part = reader.read(decoder.decode(chunk, { stream: true }));
      if (faults.length <= faultsShown) faults.push(...part.faults);
      if (faults.length === 0) for (const listed of part.ranges) buckets.add(listed);
      if (buckets.size >= heldMax) await write();
      await setImmediate();
    }
    const last = reader.end();
    faults.push(...last.faults);
    if (faults.length > 0) throw listInvalid(faults);
    for (const listed of last.ranges) buckets.add(listed);
    await write();
    if (count === 0) throw new AccelError("LIST_INVALID", "the list holds no address");
    return { botId, count, digest, lines: reader.lines };
  }

  async #do<T>(action: (work: Work) => Promise<T>): Promise<T> {
    const { value, appended } = await this.#store.run(async (work) => ({
      keep: true,
      value: await action(work),
    }));
    this.#wake(appended);
    return value;
  }
}

async function recordImport(
  work: Work,
  { domain, set, bot, isReplacing, operator }: BotImport,
  customerId: number,
  outcome: StagedOutcome,
): Promise<void> {
  await recordAudit(work, {
    via: "operator",
    who: operator ?? "",
    user_id: null,
    customer_id: customerId,
    action: "bots import",
    ids: { domain, set, bot },
    change: { replace: isReplacing, ...outcome },
    address: null,
    request_id: null,
  });
}

function listInvalid(faults: readonly LineFault[]): AccelError {
  const shown = faults.slice(0, faultsShown).map(({ line, reason }) => `line ${line}: ${reason}`);
  const more = faults.length > faultsShown ? ["and more"] : [];
  return new AccelError("LIST_INVALID", [...shown, ...more].join("\n"));
}

type Begun = {
  readonly place: BotPlace;
  readonly setId: number;
  readonly botId: number;
  readonly customerId: number;
};

async function begin(
  work: Work,
  { domain: host, customerId: meant, set, bot }: BotImport,
): Promise<Begun> {
  const { id: domainId, customer_id: customerId } = await domainOf(work, host, meant);
  const place = { domainId, host, set, bot };
  const { id: setId } = await openSet(work, place);
  return { place, setId, botId: await newBotNumber(work, setId), customerId };
}

async function domainOf({ tx }: Work, host: string, customerId: number | undefined) {
  const mains = await tx
    .selectFrom("domains")
    .select(["id", "customer_id"])
    .where("name", "=", host)
    .execute();
  const subs = await tx
    .selectFrom("sub_domains")
    .select(["domain_id as id", "customer_id"])
    .where("name", "=", host)
    .execute();
  const found = [...mains, ...subs];
  const own = found.filter(({ customer_id: id }) => customerId === undefined || id === customerId);
  const [one] = own;
  if (one === undefined)
    throw new AccelError("NOT_FOUND", `there is no domain or sub-domain ${host}`);
  if (own.length > 1)
    throw new AccelError(
      "USAGE",
      `several customers have ${host}: ${own.map(({ customer_id: id }) => id).join(", ")}; say which with --customer`,
    );
  return one;
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

/** Whether there may be more. */
async function sweepPart({ tx }: Work, botId: number): Promise<boolean> {
  const part = tx
    .selectFrom("bot_elements")
    .select("range")
    .where("bot_id", "=", botId)
    .limit(rowsPerStatement);
  const gone = tx.deleteFrom("bot_elements").where("bot_id", "=", botId).where("range", "in", part);
  if ((await deletedRows(gone)) > 0) return true;
  await tx.deleteFrom("dead_bots").where("bot_id", "=", botId).execute();
  return false;
}
