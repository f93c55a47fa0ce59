// Fetches lists of addresses from URLs that customers set, each when its time has come, one of a customer at a time. A list that is good takes the place of what the bot holds,
// as one version; one that is not changes nothing, and the source says why.

import { randomBytes } from "node:crypto";
import type { ResolveName } from "../../base/judged-lookup.ts";
import type { Log } from "../../base/log.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import { every } from "../../base/wait.ts";
import { AnyListReader } from "../../core/addresses/any-list.ts";
import { ListFormFault, type LineFault } from "../../core/addresses/range-list.ts";
import { shrinkFault } from "../../core/addresses/shrink-guard.ts";
import { fetchedRefusal, publishedRefusal, vipRefusal } from "../../core/addresses/range-limits.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import { botListMax } from "../../wire/customer/bot-list.ts";
import { customerElements } from "../store/bots/bot-elements.ts";
import { dropRewrite, heldBot } from "../store/bots/bot-rewrite.ts";
import {
  hasDueSource,
  keepSource,
  movePublished,
  placeOfSource,
  releaseSource,
  settleSource,
  takeSource,
  type OwnedSource,
  type SourceEnd,
} from "../store/bots/bot-sources.ts";
import { replaceByStaged, type Keeping, type StagedOutcome } from "../store/bots/bot-staged.ts";
import { beginStaging, listParts, stageList, type Transacting } from "../store/bots/bot-staging.ts";
import type { CustomerStore } from "../store/engine/customer-store.ts";
import type { Store } from "../store/engine/database.ts";
import type { Work } from "../store/engine/work.ts";
import { recordAudit } from "../store/people/audit.ts";
import { fetchList, ListBroke, type FetchedList } from "./list-fetch.ts";

export const sourceMetrics = {
  accel_central_list_fetches_total: {
    kind: "counter",
    help: "Lists of bots' addresses that were to be fetched from URLs, by outcome: changed, unchanged, failed (the list did not come), refused (it came and is not good).",
    labels: ["outcome"],
  },
} as const;

export type BotSourcesDeps = {
  readonly store: Store;
  readonly customers: Pick<CustomerStore, "run">;
  /** Called with the deployment sites whose journal is longer. */
  readonly wake: (deploymentSiteIds: readonly number[]) => void;
  /** Called when the source of a main domain has something new to show. */
  readonly onAttempt: (customerId: number, main: string) => void;
  readonly registry: Registry;
  readonly now: () => Date;
  readonly log: Log;
  /** The most elements of a customer. */
  readonly elementsMax: number;
  readonly mayBePrivate: boolean;
  readonly random: () => number;
  readonly resolve?: ResolveName;
  readonly timings?: {
    readonly intervalMs?: number;
    readonly silenceMs?: number;
    readonly wholeMs?: number;
    readonly keepMs?: number;
  };
};

const lookMs = 1_000;
const keepMsUsual = 10_000;
/** A million lines over a slow line. */
const wholeMsMost = 300_000;
/** Servers may be slow, and each list is one customer's: nobody waits for another's. */
const atOnce = 8;
const faultsShown = 10;

/** Starts the job. Disposing waits for the attempts under way, which are broken off. */
export function startBotSources(deps: BotSourcesDeps): AsyncDisposable {
  const { store, now, log, timings } = deps;
  const ending = new AbortController();
  const fetching = new SourceFetching(deps);
  const running = new Set<Promise<void>>();
  const onError = (error: unknown): void =>
    log.error({ err: error }, "lists could not be fetched from their URLs");
  const begin = (source: OwnedSource): void => {
    const one = fetching
      .attempt(source, ending.signal)
      .catch(onError)
      .finally(() => running.delete(one));
    running.add(one);
  };
  let hasBegun = false;
  const look = async (): Promise<void> => {
    if (!hasBegun) {
      const moved = await fetching.followRelease();
      if (moved > 0) log.info({ moved }, "lists of crawlers are published elsewhere now");
      hasBegun = true;
    }
    while (running.size < atOnce && (await hasDueSource(store, now().toISOString()))) {
      const source = ending.signal.aborted ? undefined : await fetching.take();
      if (source === undefined) return;
      begin(source);
    }
  };
  const looking = every(timings?.intervalMs ?? lookMs, look, { stop: ending.signal, onError });
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await looking;
      await Promise.all(running);
    },
  };
}

class SourceFetching {
  readonly #deps: BotSourcesDeps;
  readonly #by = randomBytes(8).toString("hex");
  readonly #count: (outcome: string) => void;

  constructor(deps: BotSourcesDeps) {
    this.#deps = deps;
    const metrics = createMetrics(sourceMetrics, deps.registry);
    this.#count = (outcome) => metrics.accel_central_list_fetches_total.inc({ outcome });
  }

  async followRelease(): Promise<number> {
    return this.#do(movePublished);
  }

  /** Takes the source that is due longest; undefined if others have taken it, or its customer is being served. */
  async take(): Promise<OwnedSource | undefined> {
    return this.#do(async (work) => takeSource(work, this.#by));
  }

  /** Fetches a source that was taken, as long as it is what it was. */
  async attempt(source: OwnedSource, stop: AbortSignal): Promise<void> {
    const { wholeMs = wholeMsMost, keepMs = keepMsUsual } = this.#deps.timings ?? {};
    const [over, gone] = [new AbortController(), new AbortController()];
    const keep = async (): Promise<void> => {
      if (!(await this.#do(async (work) => keepSource(work, source)))) gone.abort();
    };
    const keeping = every(keepMs, keep, { stop: over.signal, onError: () => {} });
    try {
      const signal = AbortSignal.any([stop, gone.signal, AbortSignal.timeout(wholeMs)]);
      const end = await this.#attempt(source, signal);
      // Breaking off is no attempt: the source is due again when central is back.
      if (end !== undefined && !stop.aborted) await this.#settle(source, end);
      if (stop.aborted) await this.#do(async (work) => releaseSource(work, source));
    } finally {
      over.abort();
      await keeping;
    }
  }

  /** Returns how the attempt ended; undefined if that is written already. */
  async #attempt(source: OwnedSource, signal: AbortSignal): Promise<SourceEnd | undefined> {
    const { mayBePrivate, resolve, timings } = this.#deps;
    const bot = await this.#do(async (work) => heldBot(work, placeOfSource(source)));
    // What somebody marked beside would stay if the list were only asked whether it changed.
    const held = bot?.digest === source.digest ? bot?.digest : undefined;
    const told = { etag: source.etag, lastModified: source.last_modified };
    const fetched = await fetchList(source.url, {
      mayBePrivate,
      held: held === undefined ? null : told,
      signal,
      ...(resolve !== undefined && { resolve }),
      ...(timings?.silenceMs !== undefined && { silenceMs: timings.silenceMs }),
    });
    switch (fetched.kind) {
      case "unchanged":
        return held === undefined
          ? failed("the server said that the list is as before, without being asked")
          : { outcome: "unchanged", told, digest: held };
      case "failed":
        return { ...fetched, outcome: "failed" };
      case "list":
        return this.#takeIn(source, fetched, signal);
      default:
        return fetched satisfies never;
    }
  }

  async #takeIn(
    source: OwnedSource,
    { body, told }: Extract<FetchedList, { kind: "list" }>,
    signal: AbortSignal,
  ): Promise<SourceEnd | undefined> {
    const place = placeOfSource(source);
    const ofVip = source.is_published === 1 ? publishedRefusal : vipRefusal;
    const reader = new AnyListReader(source.kind === "vip" ? ofVip : fetchedRefusal);
    const transact: Transacting = async (action) => this.#do(action);
    const staging = await this.#do(async (work) => beginStaging(work, place));
    try {
      const staged = await stageList(transact, staging, listParts(reader, body), {
        bot: source.bot,
        elementsMax: botListMax,
        faultsMax: faultsShown,
        signal,
      });
      if (staged.kind === "faults")
        return refused(faultsText(staged.faults, staged.count, reader.unit));
      if (staged.kind === "too-many")
        return refused(`the list has more than ${botListMax} addresses and ranges`);
      const put = { ...staging, ...staged.staged };
      const { digest } = staged.staged;
      const replaced = await replaceByStaged(this.#keeping, place, put, {
        refusal: ({ before, removed }) => {
          const fault = shrinkFault(before?.count ?? 0, put.count, removed);
          return fault === undefined || source.allow_shrink === 1
            ? undefined
            : `${fault}; if that is meant, fetch it with ?allow_shrink=true`;
        },
        settle: async (work, outcome) => {
          const isOver = outcome.added > 0 && (await this.#isCustomerFull(work, source));
          if (isOver)
            return `the customer's bots would hold more than ${this.#deps.elementsMax} addresses and ranges`;
          const isChange = outcome.added + outcome.removed > 0;
          const end = { outcome: isChange ? "changed" : "unchanged", told, digest } as const;
          if (!(await settleSource(work, source, end, this.#deps.random())))
            return "the source was changed meanwhile";
          if (isChange) await recordFetch(work, source, outcome);
          return undefined;
        },
      });
      if (replaced.kind === "refused") return refused(replaced.reason);
      if (replaced.kind === "busy") return failed("the bot is being changed by others");
      this.#tell(source, replaced.outcome);
      return undefined;
    } catch (error) {
      return endOf(error, signal);
    } finally {
      await this.#do(async (work) => dropRewrite(work, staging));
    }
  }

  async #isCustomerFull(work: Work, { customerId }: OwnedSource): Promise<boolean> {
    return (await customerElements(work, customerId)) > this.#deps.elementsMax;
  }

  async #settle(source: OwnedSource, end: SourceEnd): Promise<void> {
    const { random, log } = this.#deps;
    const isSettled = await this.#do(async (work) => settleSource(work, source, end, random()));
    if (!isSettled) return;
    this.#count(end.outcome);
    const facts = { ...factsOf(source), outcome: end.outcome };
    if ("reason" in end) log.warn({ ...facts, reason: end.reason }, "list of a bot not taken in");
    else log.debug(facts, "list of a bot is as before");
    this.#hint(source);
  }

  /** Tells of a list that was taken in. */
  #tell(source: OwnedSource, { version, bot_count: count, added, removed }: StagedOutcome): void {
    const outcome = added + removed > 0 ? "changed" : "unchanged";
    this.#count(outcome);
    const facts = { ...factsOf(source), outcome, version, count, added, removed };
    this.#deps.log.info(facts, "list of a bot fetched");
    this.#hint(source);
  }

  #hint({ customerId, main }: OwnedSource): void {
    this.#deps.onAttempt(customerId, main);
  }

  readonly #keeping: Keeping = async (action) => {
    const { value, appended } = await this.#deps.customers.run(action);
    this.#deps.wake(appended);
    return value;
  };

  async #do<T>(action: (work: Work) => Promise<T>): Promise<T> {
    return this.#keeping(async (work) => ({ keep: true, value: await action(work) }));
  }
}

const refused = (reason: string): SourceEnd => ({ outcome: "refused", reason });
const failed = (reason: string): SourceEnd => ({ outcome: "failed", reason });

function factsOf({ customerId, host, kind, bot, url }: OwnedSource) {
  return { customer: customerId, domain: host, list: kind, bot, url };
}

function faultsText(faults: readonly LineFault[], count: number, unit: string): string {
  const shown = faults.map(({ line, reason }) => `${unit} ${line}: ${reason}`);
  const more = count > faults.length ? [`and ${count - faults.length} more`] : [];
  return [...shown, ...more].join("; ");
}

/** Tells a list that is not good from one that did not come. Throws what is a fault of central. */
function endOf(error: unknown, signal: AbortSignal): SourceEnd {
  if (signal.aborted) return failed("the list took too long to come in");
  if (error instanceof ListBroke) return failed(error.message);
  if (error instanceof ListFormFault) return refused(`what came ${error.message}`);
  if (error instanceof AccelError && error.code === "CONFLICT") return failed(messageOf(error));
  throw error;
}

async function recordFetch(
  work: Work,
  { customerId, url, host, kind, bot }: OwnedSource,
  { version, bot_count: count, added, removed }: StagedOutcome,
): Promise<void> {
  await recordAudit(work, {
    via: "central",
    who: "central",
    user_id: null,
    customer_id: customerId,
    action: "list fetched",
    ids: { domain: host, list: kind, bot },
    change: { url, version, count, added, removed },
    address: null,
    request_id: null,
  });
}
