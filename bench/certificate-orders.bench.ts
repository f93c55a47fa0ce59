// Certificates that central orders from a real directory (pebble): how long an order takes until every agent serves it, 100 renewals
// under load without a failed handshake (ACME_RENEWALS sets another number), and 50 kills of central (ACME_KILLS) without a lost order.

import { runAcmeKills } from "../test/support/acme-kill.ts";
import { runRenewals } from "../test/support/acme-renewals.ts";
import { AcmeRig } from "../test/support/acme-rig.ts";
import { builtTree } from "../test/support/built-tree.ts";
import { isPebbleMissing, pebbleHint } from "../test/support/pebble.ts";
import { Figures } from "./support/figures.ts";

const renewals = Number(process.env["ACME_RENEWALS"] ?? 100);
const kills = Number(process.env["ACME_KILLS"] ?? 50);
const agents = 3;
const orders = 5;
const sayEvery = 10;

export async function run(say: (line: string) => void): Promise<void> {
  if (isPebbleMissing) throw new Error(pebbleHint);
  using tree = builtTree();
  const figures = new Figures(say);
  await orderToServed(tree.main, figures);
  await renewing(tree.main, figures, say);
  await killing(tree.main, figures, say);
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}

async function orderToServed(main: string, figures: Figures): Promise<void> {
  await using rig = await AcmeRig.start({ agents, main });
  const tookMs: number[] = [];
  for (let no = 0; no < orders; no++) {
    const domain = `o${no}.example.com`;
    await rig.addDomain(domain);
    const began = performance.now();
    await rig.orderFor(domain);
    const order = await rig.untilOrder(domain, "issued", (one) => one.certificate !== null);
    await rig.untilServed(domain, order.certificate?.fingerprint ?? "");
    tookMs.push(performance.now() - began);
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  const [median = 0] = sorted.slice(Math.floor(orders / 2));
  figures.add("from the activation to a handshake at every agent, median", median, "ms", {
    most: 30_000,
  });
  figures.add("the slowest", sorted.at(-1) ?? 0, "ms", { most: 60_000 });
}

async function renewing(
  main: string,
  figures: Figures,
  say: (line: string) => void,
): Promise<void> {
  await using rig = await AcmeRig.start({ agents, main, validityS: 90, noncesRefused: 20 });
  const run = await runRenewals(rig, {
    domains: 25,
    renewals,
    visitors: 8,
    withinMs: 900_000,
    onRenewal: (so) => {
      if (so.renewals % sayEvery === 0)
        say(`${so.renewals} renewals, ${so.handshakes} handshakes, ${so.failed.length} failed`);
    },
  });
  for (const wrong of run.failed.slice(0, 20)) say(wrong);
  figures.add("renewals under load", run.renewals, "", { least: renewals });
  figures.add("handshakes meanwhile", run.handshakes, "", { least: renewals });
  figures.add("failed handshakes", run.failed.length, "", { most: 0 });
}

async function killing(main: string, figures: Figures, say: (line: string) => void): Promise<void> {
  await using rig = await AcmeRig.start({ agents, main });
  const run = await runAcmeKills(rig, kills, (so) => {
    if (so.kills % sayEvery === 0) say(`${so.kills} kills`);
  });
  for (const wrong of run.lost) say(wrong);
  for (const [state, count] of run.found) figures.add(`found ${state} after the start`, count, "");
  // A kill that meets no order proves nothing: about half of them, which come by chance, meet one.
  const underWay = (run.found.get("ordering") ?? 0) + (run.found.get("proving") ?? 0);
  figures.add(`found under way after one of ${run.kills} kills`, underWay, "", {
    least: Math.ceil(kills / 4),
  });
  figures.add("orders lost", run.lost.length, "", { most: 0 });
}
