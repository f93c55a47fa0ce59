// Renewals while visitors come: certificates that live for a minute, and handshakes of all hosts at all agents without a pause.

import { handshake, type AcmeRig } from "./acme-rig.ts";

export type RenewalRun = {
  handshakes: number;
  /** Certificates that took the place of another, by what visitors saw at any agent. */
  renewals: number;
  readonly failed: string[];
};

export type RenewalOptions = {
  readonly domains: number;
  readonly renewals: number;
  readonly visitors: number;
  readonly onRenewal?: (run: RenewalRun) => void;
  /** It gives up after so long. */
  readonly withinMs: number;
};

/** The agents of `rig` run; its certificates live shortly. */
export async function runRenewals(
  rig: AcmeRig,
  { domains, renewals, visitors, withinMs, onRenewal = () => undefined }: RenewalOptions,
): Promise<RenewalRun> {
  const names = Array.from({ length: domains }, (_, no) => `r${no}.example.com`);
  for (const name of names) await rig.addDomain(name);
  for (const name of names) await rig.orderFor(name);
  for (const name of names) {
    const there = await rig.untilOrder(name, "issued", (one) => one.certificate !== null);
    await rig.untilServed(name, there.certificate?.fingerprint ?? "");
  }
  const run: RenewalRun = { handshakes: 0, renewals: 0, failed: [] };
  const ca = await rig.pebble.root();
  const seen = new Map(names.map((name) => [name, new Set<string>()] as const));
  const endMs = performance.now() + withinMs;
  const isOver = (): boolean =>
    run.renewals >= renewals || run.failed.length > 20 || performance.now() > endMs;
  const visit = async (no: number): Promise<void> => {
    for (let turn = no; !isOver(); turn++) {
      const name = names[turn % names.length] ?? "";
      const { address = "" } = rig.agents[turn % rig.agents.length] ?? {};
      const found = await handshake(address, rig.tlsPort, name, ca);
      run.handshakes++;
      const known = seen.get(name);
      if (found.startsWith("failed")) run.failed.push(`${name} at ${address}: ${found}`);
      else if (known?.has(found) === false) {
        known.add(found);
        if (known.size === 1) continue;
        run.renewals++;
        onRenewal(run);
      }
    }
  };
  // Steps that have no common divisor with the agents and the hosts come to each pair.
  await Promise.all(Array.from({ length: visitors }, async (_, no) => visit(no * 7)));
  return run;
}
