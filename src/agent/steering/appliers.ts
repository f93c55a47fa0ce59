// What each kind of journal entry does. The effect is durable and in force before an applier resolves; a
// repeated entry gives the same state and the same outcome.

import type { EntryPlace } from "../../core/serving/release-list.ts";
import type { JournalBody, KnownEntry } from "../../wire/journal.ts";
import type { SetStore } from "../bots/sets/set-store.ts";
import type { SetWatch } from "../bots/sets/set-watch.ts";
import type { ClearGone } from "../cache/clearing/clears.ts";
import type { IndexClient } from "../cache/index/index-client.ts";
import type { Documents } from "../link/agent-db.ts";
import {
  refused,
  refusing,
  type Appliers,
  type EntryOutcome,
  type LaterOutcome,
} from "../link/entry-outcome.ts";
import type { LocalSites } from "../viewset/local-sites.ts";
import type { Viewsets } from "../viewset/viewsets.ts";
import type { Activations } from "./activation.ts";
import { selectedBy } from "./clear-order.ts";
import type { LateDrops } from "./late-drops.ts";
import { documentOf, type Serving } from "./serving.ts";
import type { SetChanges } from "./set-changes.ts";
import type { VaultChanges } from "./vault-changes.ts";

export type SteeringPorts = {
  readonly serving: Serving;
  readonly documents: Documents;
  readonly sets: Pick<SetStore, "keepOnly" | "list">;
  readonly watch: Pick<SetWatch, "keepOnly">;
  readonly setChanges: SetChanges;
  readonly viewsets: Pick<Viewsets, "importSite">;
  readonly activations: Activations;
  /** The epoch of the journal that the entries belong to. */
  readonly epoch: () => string | null;
  readonly index: Pick<IndexClient, "clear" | "dropDomain" | "dropHost">;
  readonly lateDrops: Pick<LateDrops, "spreadS" | "plan">;
  readonly locals: Pick<LocalSites, "look">;
  readonly vault: Pick<VaultChanges, "changeKeys" | "changeCertificates">;
};

export function createAppliers(ports: SteeringPorts): Appliers {
  return {
    "viewset.activated": ({ body, seq }, signal) =>
      ports.activations.activate(body, placeOf(ports, seq), signal),
    "viewset.prepare": ({ body }, signal) => ports.activations.prepare(body, signal),
    "viewset.withdrawn": async ({ body }) => ports.activations.withdraw(body),
    "cache.clear": (entry) => clear(ports, entry),
    "bots.changed": ({ body }, signal) => changeSet(ports.setChanges, body, signal),
    "policy.changed": ({ body }) => changePolicy(ports, body),
    "policy.classes": async ({ body }) => noteClasses(ports, body),
    "domains.changed": ({ body }) => changeDomains(ports, body),
    "viewset.import": ({ body }, signal) => importSite(ports, body, signal),
    "key.changed": ({ body, seq }) => ports.vault.changeKeys(body, placeOf(ports, seq)),
    "challenges.changed": ({ body }) => changeChallenges(ports, body),
    "certificate.changed": ({ body, seq }, signal) =>
      ports.vault.changeCertificates(body, placeOf(ports, seq), signal),
  };
}

function placeOf({ epoch }: SteeringPorts, seq: number): EntryPlace {
  const now = epoch();
  return now === null ? null : { epoch: now, seq };
}

async function clear(
  { index, serving }: SteeringPorts,
  { body, seq, extension: items }: Extract<KnownEntry, { kind: "cache.clear" }>,
): Promise<EntryOutcome> {
  return refusing(["PATTERN_INVALID"], async () => {
    const { clear_id: clearId, domain, host, patterns } = body;
    const { applied, gone, onLate } = await serving.giveClear((state) => {
      const selected = selectedBy({ domain, patterns, items }, state);
      return index.clear({ clearId, domain, host, seq, ...selected });
    });
    const later = gone.then((told) => goneOf(clearId, told));
    // The link owns it; until it is handed over, a rejection must not be unhandled.
    later.catch(() => undefined);
    const { clearNo, matched, widened, invisibleMs } = await applied;
    const counts = { matched, widened, invisible_ms: invisibleMs };
    // Central tells by it that the items were read, and not the wider patterns.
    const read = items === undefined ? {} : { items: true };
    const proof = { clear_id: clearId, clear_no: clearNo, ...counts, ...read };
    const onAmended: EntryOutcome["onAmended"] = (tell) =>
      onLate((told) => tell({ detail: proof, later: goneOf(clearId, told) }));
    return { phase: "applied", detail: proof, later, onAmended };
  });
}

function goneOf(clearId: string, gone: ClearGone): LaterOutcome {
  const { removed, blockedInFlight, goneMs, verified, left } = gone;
  return {
    phase: "gone",
    detail: {
      clear_id: clearId,
      removed,
      blocked_in_flight: blockedInFlight,
      gone_ms: goneMs,
      verified: verified === true,
      ...(left > 0 && { left }),
    },
  };
}

async function changeSet(
  changes: SetChanges,
  body: JournalBody<"bots.changed">,
  signal: AbortSignal,
): Promise<EntryOutcome> {
  const outcome = await changes.change(body, signal);
  if (outcome.kind === "refused") return refused(outcome.reason);
  const { set, whole } = outcome;
  return {
    phase: "applied",
    detail: {
      domain: body.domain,
      set: body.set,
      version: set?.version ?? 0,
      count: set?.count ?? 0,
      digest: set?.digest ?? "",
      whole,
    },
  };
}

/** What was told of classes of bots before it comes into force with it: a policy is one whole. */
async function changePolicy(
  { serving, documents }: SteeringPorts,
  body: JournalBody<"policy.changed">,
): Promise<EntryOutcome> {
  const classes = documentOf(documents, "told_classes");
  const put = { policy: body, ...(classes !== undefined && { policy_classes: classes }) };
  await serving.publish({ policy: body, ...(classes !== undefined && { classes }) }, () =>
    documents.put(put),
  );
  return { phase: "applied", detail: { domains: body.domains.length } };
}

function noteClasses(
  { documents }: SteeringPorts,
  body: JournalBody<"policy.classes">,
): EntryOutcome {
  documents.put({ told_classes: body });
  return { phase: "applied", detail: { domains: body.domains.length } };
}

/** Every worker answers them when this resolves. Those of a domain that is not linked here are nobody's. */
async function changeChallenges(
  { serving, documents }: SteeringPorts,
  body: JournalBody<"challenges.changed">,
): Promise<EntryOutcome> {
  const { domain, challenges } = body;
  if (serving.names(domain) === undefined)
    return refused(`${domain} is not linked to this deployment site`);
  const kept = challenges.length === 0 ? null : body;
  await serving.publish({ challenges: body }, () =>
    documents.put({ [`challenges:${domain}`]: kept }),
  );
  return { phase: "applied", detail: { domain, challenges: challenges.length } };
}

/**
 * Unlinking drops everything cached, durably, before the receipt; otherwise relinking would resurrect it. So
 * it stops serving, drops, then forgets; after a crash in between the entry is repeated over the same
 * documents.
 */
export async function changeDomains(
  { serving, documents, sets, watch, index, locals, activations }: SteeringPorts,
  body: JournalBody<"domains.changed">,
): Promise<EntryOutcome> {
  const before = serving.domains();
  const homeAfter = new Map(
    body.domains.flatMap(({ name, sub_domains: subs }) => [
      [name, name] as const,
      ...subs.map((sub) => [sub.name, name] as const),
    ]),
  );
  const goneDomains = before
    .filter(({ name }) => !body.domains.some((linked) => linked.name === name))
    .map(({ name }) => name);
  const goneHosts = before
    .filter(({ name }) => !goneDomains.includes(name))
    .flatMap(({ name, sub_domains: subs }) => subs.map((sub) => [sub.name, name] as const))
    .filter(([host, home]) => homeAfter.get(host) !== home)
    .map(([host]) => host);
  await serving.publish({ domains: body.domains });
  for (const domain of goneDomains) await index.dropDomain(domain);
  for (const host of goneHosts) await index.dropHost(host);
  sets.keepOnly(new Set(homeAfter.keys()));
  watch.keepOnly(new Set(homeAfter.keys()));
  await serving.publishSets(); // A host that is linked again must not be judged by its former sets.
  const challenges = goneDomains
    .filter((domain) => documentOf(documents, `challenges:${domain}`) !== undefined)
    .map((domain) => [`challenges:${domain}`, null] as const);
  activations.forget(goneDomains, { domains: body, ...Object.fromEntries(challenges) });
  await locals.look();
  return {
    phase: "applied",
    detail: { domains: body.domains.length, dropped: [...goneDomains, ...goneHosts] },
  };
}

async function importSite(
  { serving, viewsets }: SteeringPorts,
  body: JournalBody<"viewset.import">,
  signal: AbortSignal,
): Promise<EntryOutcome> {
  const domain = serving.names(body.domain);
  if (domain === undefined) return refused(`${body.domain} is not linked to this deployment site`);
  return refusing(["IMPORT_NO_SITE", "IMPORT_IMPOSSIBLE", "VIEWSET_INVALID"], async () => {
    const done = await viewsets.importSite(body.import_id, domain, signal);
    return { phase: "applied", detail: { import_id: body.import_id, ...done } };
  });
}
