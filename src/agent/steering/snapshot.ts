// Taking over the whole desired state: for a new agent, a new store at central, or a cursor that no longer fits.
//
// Clears may have been skipped, so everything cached of every domain is dropped. Sets and viewsets that the agent already has are not fetched again.

import { AccelError, messageOf } from "../../core/faults.ts";
import type { ReadyViewset } from "../../core/compose-state.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Snapshot } from "../../wire/snapshot.ts";
import { changeDomains, type SteeringPorts } from "./appliers.ts";
import { documentOf } from "./serving.ts";

export type SnapshotOutcome = {
  readonly cleared: readonly string[];
  /** Viewsets that this agent refuses; the domain keeps what it had. */
  readonly refused: readonly { readonly domain: string; readonly reason: string }[];
};

/** Throws what is retryable (network, a set that does not arrive whole): the link asks for a new snapshot then. */
export async function applySnapshot(
  ports: SteeringPorts,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<SnapshotOutcome> {
  const { serving, documents, index } = ports;
  await changeDomains(ports, snapshot.domains);
  const cleared = snapshot.domains.domains.map(({ name }) => name);
  for (const domain of cleared) await index.dropDomain(domain);
  await takeSets(ports, snapshot, signal);
  await serving.publish({ policies: snapshot.policy.domains }, () =>
    documents.put({ policy: snapshot.policy }),
  );
  await forgetViewsets(ports, snapshot);
  const refused: { domain: string; reason: string }[] = [];
  for (const body of snapshot.viewsets) {
    const taken = await takeViewset(ports, body, signal);
    if (typeof taken === "string") refused.push({ domain: body.domain, reason: taken });
    else
      await serving.publish({ viewset: { domain: body.domain, ready: taken } }, () =>
        documents.put({ [`viewset:${body.domain}`]: body }),
      );
  }
  return { cleared, refused };
}

async function takeSets(
  { sets, central }: SteeringPorts,
  { bots }: Snapshot,
  signal: AbortSignal,
): Promise<void> {
  const have = new Map(sets.list().map((set) => [`${set.kind}/${set.host}`, set]));
  for (const state of bots) {
    const own = have.get(`${state.set}/${state.domain}`);
    have.delete(`${state.set}/${state.domain}`);
    if (own?.version === state.version && own.digest === state.digest) continue;
    const elements = state.count === 0 ? [] : await central.botSetContent(state.blob, signal);
    sets.replace(
      {
        host: state.domain,
        kind: state.set,
        version: state.version,
        count: state.count,
        digest: state.digest,
      },
      elements,
    );
  }
  // What central no longer has: an empty set of its last version, so that nobody is judged by it.
  for (const { host, kind, version } of have.values())
    sets.replace({ host, kind, version, count: 0, digest: "0".repeat(64) }, []);
}

/** Where central has no active viewset the domain falls back to the host's own site, as it would had the agent been there all the time. */
async function forgetViewsets(
  { serving, documents }: SteeringPorts,
  { domains, viewsets }: Snapshot,
): Promise<void> {
  const active = new Set(viewsets.map(({ domain }) => domain));
  for (const { name: domain } of domains.domains) {
    const key = `viewset:${domain}` as const;
    if (active.has(domain) || documentOf(documents, key) === undefined) continue;
    await serving.publish({ viewset: { domain, ready: null } }, () =>
      documents.put({ [key]: null }),
    );
  }
}

async function takeViewset(
  { serving, viewsets }: SteeringPorts,
  body: JournalBody<"viewset.activated">,
  signal: AbortSignal,
): Promise<ReadyViewset | string> {
  const domain = serving.names(body.domain);
  if (domain === undefined) return `${body.domain} is not linked to this deployment site`;
  try {
    return await viewsets.prepare(body.manifest, domain, signal);
  } catch (error) {
    if (error instanceof AccelError && error.code === "VIEWSET_INVALID") return messageOf(error);
    throw error;
  }
}
