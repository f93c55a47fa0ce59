// Opens what follows central: the link with its appliers, and the wait for central's word that no clear was
// missed.

import { join } from "node:path";
import { repeating, sleep } from "../base/wait.ts";
import { edgeFacts } from "./admin/edge-facts.ts";
import { dryRun } from "./dry-run.ts";
import { selectedBy } from "./steering/clear-order.ts";
import type { Ground } from "./ground.ts";
import { BotSetContents } from "./link/bot-set-content.ts";
import { Link } from "./link/link.ts";
import { createReporter } from "./operators.ts";
import type { ServedParts } from "./serve.ts";
import { startUnconfirmed, WakeDoubt } from "./unconfirmed.ts";
import { changeDomains, createAppliers, type SteeringPorts } from "./steering/appliers.ts";
import { SetChanges } from "./steering/set-changes.ts";
import { applySnapshot } from "./steering/snapshot.ts";

/**
 * The time between two rounds of tending sets, the same as between polls: a set may become available at
 * central without a new entry in the journal.
 */
const tendPeriodMs = 60_000;

export type Following = {
  readonly link: Link;
  /** Resolves when central has given its word, or when the wait for it is over. */
  readonly confirming: Promise<void>;
};

export function openLink(
  stack: AsyncDisposableStack,
  ground: Ground,
  served: ServedParts,
): Following {
  const { options, common, db, index, sets, setWatch: watch, unreviewed } = ground;
  const { settings, version, bootEpoch, health, log, random, now } = options;
  const { serving, viewsets, locals, releases, certificates, lateDrops } = served;
  const ports: SteeringPorts = {
    serving,
    documents: db,
    sets,
    watch,
    setChanges: openSetChanges(stack, ground, served),
    viewsets,
    activations: releases.activations,
    epoch: () => db.ledger.position.epoch,
    index,
    lateDrops,
    locals,
    vault: certificates.changes,
  };
  const { client } = ground;
  const confirmed = new AbortController();
  const doubt = new WakeDoubt({
    index,
    unconfirmed: settings["link.unconfirmed"],
    catchUpMs: settings["link.catch_up_max"],
    stop: common.stop,
  });
  const link = stack.use(
    new Link({
      centralUrl: settings.central_url,
      name16: settings.name16,
      agentVersion: version,
      bootId: bootEpoch,
      edge: edgeFacts(settings.edge),
      client,
      db,
      appliers: createAppliers(ports),
      applySnapshot: (snapshot, signal) => applySnapshot(ports, snapshot, signal),
      onHeadApplied: () => {
        doubt.end();
        index.setConfirmed();
        health.settle("clears_unconfirmed");
        confirmed.abort();
      },
      onWake: () => doubt.begin(),
      siteDeleted: async () => {
        log.error("this deployment site was deleted at central; nothing is served any more");
        await changeDomains(ports, { domains: [] });
        await certificates.changes.forget();
      },
      report: createReporter(ground, served),
      counted: (batch) => unreviewed.acknowledged(batch),
      answerDryRun: ({ domain, host, ...asked }, budgetMs) => {
        const selected = selectedBy({ domain, ...asked }, served.serving.state);
        return dryRun(index, { domain, host, ...selected }, budgetMs);
      },
      random,
      now,
      ...common,
    }),
  );
  stack.use(ground.imports.follow((progress) => link.progress(progress)));
  stack.use(db.corrected.follow(() => link.corrected()));
  return { link, confirming: confirmOrNot(ground, confirmed.signal) };
}

/**
 * Opens the changes of sets, and the task that heals sets that are behind and sweeps elements that belong to
 * none.
 */
function openSetChanges(
  stack: AsyncDisposableStack,
  { options, common, client, sets, setWatch: watch }: Ground,
  { serving }: ServedParts,
): SetChanges {
  const { settings, now, random, log } = options;
  const contents = new BotSetContents(client, join(settings.state_dir, "sets"), now);
  const changes = new SetChanges({ sets, client, contents, watch, serving });
  const tend = async (stop: AbortSignal): Promise<void> => {
    await sets.sweep(stop);
    await changes.heal(stop);
  };
  stack.use(
    repeating(tendPeriodMs, tend, {
      stop: common.stop,
      spread: 0.2,
      random,
      onError: (error) => log.error({ err: error }, "tending bot sets failed"),
    }),
  );
  return changes;
}

/**
 * Waits for central's word that no clear was missed before this start. If none comes in time, the settings
 * decide about what was cached.
 */
async function confirmOrNot({ options, index, db }: Ground, confirmed: AbortSignal): Promise<void> {
  const { settings, health, log, stop } = options;
  const waited = await sleep(settings["link.catch_up_max"], AbortSignal.any([stop, confirmed]));
  if (!waited || confirmed.aborted) return;
  const unconfirmed = settings["link.unconfirmed"];
  const hasState = (): boolean => db.ledger.position.epoch !== null;
  await startUnconfirmed({ index, hasState, unconfirmed, health, log }, confirmed);
}
