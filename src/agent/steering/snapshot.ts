// Takes over the whole desired state: for a new agent, after a new store at central, or where the cursor no
// longer fits.
//
// Clears may have been skipped, so everything cached of every domain is dropped, normally at once. Another
// store at central is noticed by all agents at the same time, so then they drop one domain after the other
// (late-drops.ts). Sets and viewsets that the agent already has are not fetched again.

import { siteStates, type BotSet, type KnownEntry } from "../../wire/journal.ts";
import type { Snapshot } from "../../wire/snapshot.ts";
import { applierOf, type EntryOutcome } from "../link/entry-outcome.ts";
import { changeDomains, createAppliers, type SteeringPorts } from "./appliers.ts";
import { documentOf } from "./serving.ts";
import type { SetTaken } from "./set-changes.ts";
import { takeVault } from "./vault-changes.ts";

export type SnapshotOutcome = {
  readonly cleared: readonly string[];
  /** The domains that are dropped within a time; until then the origin confirms their hits. */
  readonly clearing?: { readonly domains: readonly string[]; readonly within_s: number };
  /** The viewsets that this agent refuses; their domains keep what they had. */
  readonly refused: readonly { readonly domain: string; readonly reason: string }[];
  /** The sets that would have shrunk beyond reason; the last good ones stay in force. */
  readonly kept_sets: readonly {
    readonly domain: string;
    readonly set: BotSet;
    readonly reason: string;
  }[];
  /** What came of the entries that the snapshot stands for, each under its own seq. */
  readonly entries: readonly (Pick<EntryOutcome, "phase" | "detail"> & { readonly seq: number })[];
};

/**
 * Applies a snapshot. Throws what may be retried, such as network faults or a set that does not arrive whole;
 * the link then asks for a new snapshot.
 */
export async function applySnapshot(
  ports: SteeringPorts,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<SnapshotOutcome> {
  const { serving } = ports;
  await changeDomains(ports, snapshot.domains);
  const drops = await dropCached(ports, snapshot);
  const kept = await takeSets(ports, snapshot, signal);
  await serving.publishSets();
  await takeStates(ports, snapshot, signal);
  await forgetViewsets(ports, snapshot);
  const outcomes = new Map<string, EntryOutcome>();
  for (const { seq, ...body } of snapshot.viewsets) {
    const entry = seq === null ? null : { epoch: snapshot.epoch, seq };
    outcomes.set(body.domain, await ports.activations.activate(body, entry, signal));
  }
  const entries = snapshot.viewsets.flatMap(({ seq, ...body }) => {
    // The outcome is read again: a trial may have ended since, and operators do not wait for snapshots.
    if (seq === null) return [];
    const entry = { epoch: snapshot.epoch, seq };
    const outcome = ports.activations.outcomeOf(body, entry) ?? outcomes.get(body.domain);
    return outcome === undefined ? [] : [{ ...outcome, seq }];
  });
  const refused = [...outcomes].flatMap(([domain, { phase, detail }]) =>
    phase === "applied" ? [] : [{ domain, reason: String(detail["reason"]) }],
  );
  const vault = await takeVault(ports.vault, snapshot, signal);
  return { ...drops, refused, kept_sets: kept, entries: [...entries, ...vault] };
}

async function dropCached(
  { index, epoch, lateDrops }: SteeringPorts,
  snapshot: Snapshot,
): Promise<Pick<SnapshotOutcome, "cleared" | "clearing">> {
  const domains = snapshot.domains.domains.map(({ name }) => name);
  const before = epoch();
  const isOfAnotherStore = before !== null && before !== snapshot.epoch;
  if (isOfAnotherStore && snapshot.clear_now !== true) {
    lateDrops.plan(domains);
    return { cleared: [], clearing: { domains, within_s: lateDrops.spreadS } };
  }
  for (const domain of domains) await index.dropDomain(domain);
  return { cleared: domains };
}

/**
 * Takes the other states of the site as their entries would; the linked domains were taken before, keys and
 * certificates come last.
 */
async function takeStates(
  ports: SteeringPorts,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<void> {
  const appliers = createAppliers(ports);
  // They come into force with the policy. An older central has none.
  const classes = snapshot.policy_classes ?? { domains: [] };
  const told = { seq: snapshot.seq, at: "", kind: "policy.classes", body: classes } as const;
  await appliers[told.kind](told, signal);
  for (const { field, kind } of siteStates) {
    if (field === "domains" || field === "keys" || field === "certificates") continue;
    // The field has the body of its kind: both come from one row.
    const entry = { seq: snapshot.seq, at: "", kind, body: snapshot[field] } as KnownEntry;
    await applierOf(entry, appliers)(entry, signal);
  }
}

async function takeSets(
  { sets, setChanges }: SteeringPorts,
  { bots }: Snapshot,
  signal: AbortSignal,
): Promise<SnapshotOutcome["kept_sets"]> {
  const left = new Map(sets.list().map((set) => [`${set.kind}/${set.host}`, set]));
  const kept: SnapshotOutcome["kept_sets"][number][] = [];
  const keep = (domain: string, set: BotSet, taken: SetTaken): void => {
    if (taken.kind === "refused") kept.push({ domain, set, reason: taken.reason });
  };
  for (const state of bots) {
    left.delete(`${state.set}/${state.domain}`);
    keep(state.domain, state.set, await setChanges.take(state, signal));
  }
  // A set that central no longer has becomes an empty set of its last version, so that nobody is judged by
  // it.
  for (const set of left.values()) keep(set.host, set.kind, await setChanges.empty(set, signal));
  return kept;
}

/**
 * Forgets the viewsets that central no longer has active. Their domains fall back to the host's own site, as
 * if the agent had been there all the time.
 */
async function forgetViewsets(
  { serving, documents, activations }: SteeringPorts,
  { domains, viewsets }: Snapshot,
): Promise<void> {
  const active = new Set(viewsets.map(({ domain }) => domain));
  for (const { name: domain } of domains.domains) {
    const known = (["viewset", "wish"] as const).map((part) =>
      documentOf(documents, `${part}:${domain}`),
    );
    if (active.has(domain) || known.every((one) => one === undefined)) continue;
    await serving.publish({ viewset: { domain, ready: null } }, () => activations.forget([domain]));
  }
}
