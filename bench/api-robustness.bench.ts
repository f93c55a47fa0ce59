// A hundred thousand odd requests, made from the OpenAPI document, sixteen at a time: no failure inside, no hang, nothing told of the inside, every refusal as documented.

import fc from "fast-check";
import { describedDocument } from "../src/central/api/http/described.ts";
import { openApi } from "../test/central/api/api-harness.ts";
import { createContract } from "../test/support/api-contract.ts";
import { oddRequest } from "../test/support/api-fuzz.ts";
import { describeOdd, openSender } from "../test/support/api-fuzz-run.ts";
import { makeWorld } from "../test/support/api-world.ts";

const requests = 100_000;
/** Then another customer: lists do not grow without end. */
const ofOneCustomer = 2_000;
const atOnce = 16;
const faultsShown = 20;

export async function run(say: (line: string) => void): Promise<void> {
  await sendOdd(requests, say);
}

/** Throws when one answer was not as it should be. */
export async function sendOdd(count: number, say: (line: string) => void): Promise<void> {
  const contract = createContract(describedDocument());
  const seed = Date.now() % 2 ** 31;
  await using api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  using sender = openSender(api.port, contract);
  const [statuses, faults, times] = [
    new Map<number, number>(),
    new Map<string, string>(),
    new Array<number>(),
  ];
  let broken = 0;
  const startedMs = performance.now();
  for (let customer = 0; customer * ofOneCustomer < count; customer++) {
    const world = await makeWorld(api, `odd${customer}`);
    const of = oddRequest(contract.operations, world);
    const wanted = Math.min(ofOneCustomer, count - customer * ofOneCustomer);
    const odd = fc.sample(of, { numRuns: wanted, seed: seed + customer });
    const send = async (): Promise<void> => {
      for (let one = odd.pop(); one !== undefined; one = odd.pop()) {
        const judged = await sender.send(one);
        statuses.set(judged.status, (statuses.get(judged.status) ?? 0) + 1);
        times.push(judged.ms);
        if (judged.faults.length === 0) continue;
        broken++;
        const kind = `${one.of} ${judged.status} ${judged.faults.join("; ")}`.slice(0, 300);
        if (!faults.has(kind)) faults.set(kind, describeOdd(one));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, send));
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  times.sort((a, b) => a - b);
  const told = [...statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${status}: ${n}`);
  const p = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  say(
    `${times.length} requests of ${contract.operations.length} operations in ${seconds.toFixed(0)} s, seed ${seed}`,
  );
  say(`answers by status: ${told.join(", ")}`);
  say(`p50 ${p(0.5)} ms, p99 ${p(0.99)} ms, longest ${(times.at(-1) ?? 0).toFixed(0)} ms`);
  say(`not as documented: ${broken}`);
  for (const [kind, example] of [...faults].slice(0, faultsShown)) say(`  ${kind}\n    ${example}`);
  if (broken > 0) throw new Error(`${broken} answers were not as they should be`);
}
