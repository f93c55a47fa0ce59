// What follows central: the link with its appliers, and the word that no clear was missed.

import { sleep } from "../base/wait.ts";
import { edgeFacts } from "./admin/edge-facts.ts";
import type { Ground } from "./ground.ts";
import { getBotSetContent } from "./link/bot-set-content.ts";
import { startLink, type Link } from "./link/link.ts";
import { createReporter } from "./operators.ts";
import type { Served } from "./serve.ts";
import { changeDomains, createAppliers, type SteeringPorts } from "./steering/appliers.ts";
import { applySnapshot } from "./steering/snapshot.ts";

export type Following = {
  readonly link: Link;
  /** Resolves when central gave its word, or was waited for long enough. */
  readonly confirming: Promise<void>;
};

export function openLink(stack: AsyncDisposableStack, ground: Ground, served: Served): Following {
  const { options, common, db, client, index, sets } = ground;
  const { settings, version, bootEpoch, health, log, random, now } = options;
  const { serving, viewsets, locals } = served;
  const ports: SteeringPorts = {
    serving,
    documents: db,
    sets,
    viewsets,
    index,
    locals,
    central: {
      botSet: (host, kind, signal) => client.getBotSet(host, kind, signal),
      botSetContent: (blob, signal) => getBotSetContent(client, blob, signal),
    },
  };
  const confirmed = new AbortController();
  const link = stack.use(
    startLink({
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
        index.setConfirmed();
        health.settle("clears_unconfirmed");
        confirmed.abort();
      },
      siteDeleted: async () => {
        log.error("this deployment site was deleted at central; nothing is served any more");
        await changeDomains(ports, { domains: [] });
      },
      report: createReporter(ground, served),
      random,
      now,
      ...common,
    }),
  );
  return { link, confirming: confirmOrNot(ground, confirmed.signal) };
}

/** What was cached before this start waits for central's word that no clear was missed; after so long the settings decide. */
async function confirmOrNot({ options, index }: Ground, confirmed: AbortSignal): Promise<void> {
  const { settings, health, log, stop } = options;
  const waited = await sleep(settings["link.catch_up_max"], AbortSignal.any([stop, confirmed]));
  if (!waited || confirmed.aborted) return;
  const unconfirmed = settings["link.unconfirmed"];
  if (unconfirmed === "serve") index.setUnconfirmedServes();
  const what = unconfirmed === "serve" ? "served as they are" : "fetched anew from the origin";
  health.raise(
    "clears_unconfirmed",
    "warning",
    `central has not confirmed that no clear was missed; cached responses are ${what}`,
    "Clears given meanwhile take effect when central answers.",
  );
  log.warn({ unconfirmed }, "starting without central's word on missed clears");
}
