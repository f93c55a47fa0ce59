// kill -9 of central at random moments of orders: each time while a new domain orders its certificate, and others may still be
// at it. None is lost: each comes to its certificate by itself, and every agent serves it.

import { setTimeout as sleep } from "node:timers/promises";
import { issuedWithinMs, type AcmeRig } from "./acme-rig.ts";

export type AcmeKillRun = {
  kills: number;
  /** Phases in which the newest order was found after the start, as far as the API tells. */
  readonly found: Map<string, number>;
  /** Orders that did not come to a certificate, or were not served by every agent. */
  readonly lost: string[];
};

/** An order takes some six seconds: a kill may come before it is seen, and after it is done. */
const killWithinMs = 8_000;

export async function runAcmeKills(
  rig: AcmeRig,
  kills: number,
  onKill: (run: AcmeKillRun) => void = () => undefined,
): Promise<AcmeKillRun> {
  const run: AcmeKillRun = { kills: 0, found: new Map(), lost: [] };
  const domains: string[] = [];
  while (run.kills < kills) {
    const domain = `d${run.kills}.example.com`;
    domains.push(domain);
    await rig.addDomain(domain);
    await rig.orderFor(domain);
    await sleep(Math.random() * killWithinMs);
    await rig.edge.central.kill();
    run.kills++;
    await rig.edge.central.restart();
    const state = (await rig.orderOf(domain))?.state ?? "unseen";
    run.found.set(state, (run.found.get(state) ?? 0) + 1);
    onKill(run);
  }
  for (const domain of domains)
    try {
      const isThere = ({ certificate }: { certificate: unknown }) => certificate !== null;
      const order = await rig.untilOrder(domain, "issued", isThere, issuedWithinMs);
      await rig.untilServed(domain, order.certificate?.fingerprint ?? "");
    } catch (error) {
      run.lost.push(`${domain}: ${String(error).slice(0, 2_000)}`);
    }
  return run;
}
