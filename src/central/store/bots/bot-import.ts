// The operator's import: a list of any length becomes one version of a bot's set. Nothing holds the store for longer than a statement of a thousand rows.
//
//   staging   elements are written under the number of a bot that is not there (bot-staging.ts), so that nothing of them is in force
//   swap      one short transaction puts that bot where the one of before was, if the list replaces it or there was none
//   merge     into a bot that goes on, its new elements are moved over, in one transaction with turns of the event loop between
//   sweep     what belongs to no bot any more is deleted in the background; a crash in between leaves nothing else behind
// A fault in any line ends it before anything is changed.

import { setImmediate } from "node:timers/promises";
import { AccelError } from "../../../core/faults.ts";
import {
  RangeListReader,
  type LineFault,
  type ListPart,
} from "../../../core/addresses/range-list.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { recordAudit } from "../people/audit.ts";
import { dropRewrite } from "./bot-rewrite.ts";
import { putAddition, replaceByStaged, type StagedOutcome } from "./bot-staged.ts";
import { beginStaging, listParts, stageList, type Staged, type Staging } from "./bot-staging.ts";
import { rowsPerStatement } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";
import type { BotPlace } from "./bot-versions.ts";
import { deletedRows } from "../engine/counts.ts";
import type { CustomerStore, Ended } from "../engine/customer-store.ts";

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

export class BotImports {
  readonly #store: Pick<CustomerStore, "run">;
  readonly #wake: (deploymentSiteIds: readonly number[]) => void;

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
    const { domain, set, bot } = what;
    const { place, staging, customerId } = await this.#do(async (work) => begin(work, what));
    try {
      const reader = new RangeListReader();
      const staged = await this.#stage(staging, bot, listParts(reader, body), signal);
      const put = { ...staging, ...staged };
      const outcome = what.isReplacing
        ? await this.#replace(what, place, put, customerId)
        : await this.#do(async (work) => {
            const added = await putAddition(work, place, put);
            await recordImport(work, what, customerId, added);
            return added;
          });
      return { domain, set, bot, lines: reader.lines, ...outcome };
    } finally {
      await this.#do(async (work) => dropRewrite(work, staging));
    }
  }

  async #replace(
    what: BotImport,
    place: BotPlace,
    staged: Staging & Staged,
    customerId: number,
  ): Promise<StagedOutcome> {
    const replaced = await replaceByStaged(async (action) => this.#run(action), place, staged, {
      settle: async (work, outcome) => {
        await recordImport(work, what, customerId, outcome);
        return undefined;
      },
    });
    if (replaced.kind === "put") return replaced.outcome;
    throw new AccelError("CONFLICT", `${what.bot} is being changed by others; import it again`);
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
      while (!stop.aborted && (await this.#do(async (work) => sweepPart(work, botId))))
        await setImmediate();
    }
  }

  async #stage(
    staging: Staging,
    bot: string,
    list: AsyncIterable<ListPart>,
    signal: AbortSignal,
  ): Promise<Staged> {
    const staged = await stageList(async (action) => this.#do(action), staging, list, {
      bot,
      elementsMax: Infinity,
      faultsMax: faultsShown + 1,
      signal,
    });
    if (staged.kind === "faults") throw listInvalid(staged.faults);
    if (staged.kind !== "staged" || staged.staged.count === 0)
      throw new AccelError("LIST_INVALID", "the list holds no address");
    return staged.staged;
  }

  async #do<T>(action: (work: Work) => Promise<T>): Promise<T> {
    return this.#run(async (work) => ({ keep: true, value: await action(work) }));
  }

  async #run<T>(action: (work: Work) => Promise<Ended<T>>): Promise<T> {
    const { value, appended } = await this.#store.run(action);
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
  readonly staging: Staging;
  readonly customerId: number;
};

async function begin(
  work: Work,
  { domain: host, customerId: meant, set, bot }: BotImport,
): Promise<Begun> {
  const { id: domainId, customer_id: customerId } = await domainOf(work, host, meant);
  const place = { domainId, host, set, bot };
  return { place, staging: await beginStaging(work, place), customerId };
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
