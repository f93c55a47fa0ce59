// Serves what central wants: the journal behind a position (long-polled if a channel cannot be had), the
// snapshot, one bot set.

import { chainStart } from "../../core/journal/journal-chain.ts";
import { parseDomainName } from "../../core/ids.ts";
import type { JournalPage } from "../../wire/journal.ts";
import { instanceIdForm } from "../../wire/parts.ts";
import { takesClasses, takesExtensions, takesHeader } from "../../wire/position.ts";
import { agentAnswer, refusal, type AgentRoute } from "./answers.ts";
import { entriesTaken, judgeFit, type JournalPosition } from "./journal-fit.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";
import type { WakeBus } from "./wake.ts";

const waitMaxS = 30;
/**
 * The most waiting polls of one site: its agent has one, and a few may hang behind a proxy that dropped them.
 */
const waitersMax = 8;

/** `pollBegins` is told which instance waits; agents of the release before do not say who they are. */
export function createJournalRoute(
  store: AgentStore,
  bus: WakeBus,
  pollBegins: (deploymentSiteId: number, instance: string) => Disposable,
): AgentRoute {
  const waiters = new Map<number, number>();
  return async ({ request, query, deploymentSiteId, signal }) => {
    const takes = takesExtensions(request.headers[takesHeader]);
    const position = parsePosition(query);
    const waitS = parseNumber(query.get("wait") ?? "0");
    if (typeof position === "string") return refusal("invalid", position);
    if (waitS === undefined || waitS > waitMaxS)
      return refusal("invalid", `wait must be 0 to ${waitMaxS} seconds`);
    const instance = request.headers["accel-instance"];
    if (instance !== undefined && !instanceIdForm.test(String(instance)))
      return refusal("invalid", "Accel-Instance must be the instance id of hello and reports");
    using _ =
      instance === undefined || waitS === 0
        ? undefined
        : pollBegins(deploymentSiteId, String(instance));
    // Subscribed before the first look, so that an entry appended in between is not missed.
    using grown = nextWake(bus, { deploymentSiteId, seq: position.seq }, waitS * 1_000, signal);
    if (
      instance !== undefined &&
      takesClasses(request.headers[takesHeader]) &&
      (await store.tellClassesAgain(deploymentSiteId, String(instance)))
    )
      bus.publish([deploymentSiteId]);
    const page = await readPage(store, deploymentSiteId, position, takes);
    const waiting = waiters.get(deploymentSiteId) ?? 0;
    if (page.resync || page.entries.length > 0 || waitS === 0 || waiting >= waitersMax)
      return agentAnswer(page);
    waiters.set(deploymentSiteId, waiting + 1);
    try {
      await grown.promise;
    } finally {
      const left = (waiters.get(deploymentSiteId) ?? 1) - 1;
      if (left === 0) waiters.delete(deploymentSiteId);
      else waiters.set(deploymentSiteId, left);
    }
    return agentAnswer(await readPage(store, deploymentSiteId, position, takes));
  };
}

async function readPage(
  store: AgentStore,
  deploymentSiteId: number,
  position: JournalPosition,
  takes: boolean,
): Promise<JournalPage> {
  const { headSeq, resync } = await judgeFit(store, deploymentSiteId, position);
  const entries =
    resync === undefined ? (await store.entriesAfter(deploymentSiteId, position.seq)).entries : [];
  return {
    epoch: store.epoch,
    head_seq: Math.max(headSeq, entries.at(-1)?.seq ?? 0),
    resync: resync !== undefined,
    entries: entriesTaken(entries, takes),
  };
}

/** Parses the query, or says what is wrong with it. */
function parsePosition(query: URLSearchParams): JournalPosition | string {
  const seq = parseNumber(query.get("after") ?? "0");
  if (seq === undefined) return "after must be the number of an entry";
  return { epoch: query.get("epoch"), seq, chain: query.get("chain") ?? chainStart };
}

function parseNumber(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : undefined;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Resolves when the site's journal grew, the time is over or the caller is gone; never rejects. */
function nextWake(
  bus: WakeBus,
  { deploymentSiteId, seq }: { readonly deploymentSiteId: number; readonly seq: number },
  ms: number,
  signal: AbortSignal,
): { readonly promise: Promise<void> } & Disposable {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = (): void => resolve();
  const subscription = bus.subscribe((ids) => {
    if (ids.includes(deploymentSiteId)) resolve();
  });
  const watch = ms > 0 ? bus.watch({ siteId: deploymentSiteId, seq: () => seq }) : undefined;
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", done, { once: true });
  if (signal.aborted) resolve();
  return {
    promise,
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      subscription[Symbol.dispose]();
      watch?.[Symbol.dispose]();
    },
  };
}

/**
 * An agent that does not take classes of bots gets none, and is told of them in the journal behind the snapshot: it
 * refuses that, and so it is known that it missed them once it is updated.
 */
export function createSnapshotRoute(store: AgentStore, bus: Pick<WakeBus, "publish">): AgentRoute {
  return async ({ request, deploymentSiteId }) => {
    const takes = takesClasses(request.headers[takesHeader]);
    const snapshot = await store.snapshot(deploymentSiteId, takes);
    if (!takes && (await store.tellClassesAgain(deploymentSiteId))) bus.publish([deploymentSiteId]);
    return agentAnswer(snapshot);
  };
}

/** Serves `bot-sets/{domain}/{set}`. */
export function createBotSetRoute(store: AgentStore): AgentRoute {
  return async ({ deploymentSiteId }, [host = "", set = ""]) => {
    const domain = parseDomainName(host);
    if (domain === undefined || (set !== "bad" && set !== "vip"))
      return refusal("not_found", "there is no such set");
    const state = await store.botSet(deploymentSiteId, domain, set);
    return state === undefined
      ? refusal("not_found", `${domain} is not linked to this deployment site`)
      : agentAnswer(state);
  };
}
