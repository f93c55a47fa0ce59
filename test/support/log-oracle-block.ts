// `spool.when_full: block` through the whole agent: central is away, the spool fills up, visitors wait and are told 503; central comes back. Whoever was
// served has a record.

import { fill, openFullScene } from "./log-oracle-full.ts";
import type { Claim } from "./log-oracle-producer.ts";
import { claimIdOf, parseRecord } from "./log-oracle-record.ts";
import { Oracle, randomFrom, type OracleFigures } from "./log-oracle-run.ts";
import type { Scene } from "./log-oracle-scene.ts";
import { StoreReader } from "./log-oracle-store.ts";
import { until } from "./until.ts";

export type Blocked = {
  readonly figures: OracleFigures;
  readonly served: number;
  readonly refused: number;
  /** Requests that were answered otherwise than by 503 and have no record. */
  readonly unrecorded: readonly Claim[];
  /** That waited for room, as the agent counts them. */
  readonly held: number;
  /** Status of requests once central is back and the warning is settled: the first room that there is may be one record's. */
  readonly statusesAfter: ReadonlySet<number>;
  /** What /readyz says while visitors are refused, and at the end. */
  readonly readiness: string;
  readonly readinessAfter: string;
};

const refusalsWanted = 8;
const requestsAfter = 400;
/** While visitors are refused, the agent asks central every few seconds; a wait of up to a minute would be too long. */
const roomWithinMs = 45_000;
/** For some seconds after the last request that had to wait it is still told. */
const settledWithinMs = 60_000;

export async function runBlocked(): Promise<Blocked> {
  await using scene = await openFullScene({ spool: { when_full: "block" } });
  await using oracle = new Oracle(scene, randomFrom(4), { reasons: ["blocked"] });
  const { producer } = oracle;
  await producer.pause();
  scene.line.state = "cut";
  await fill(oracle, async () => producer.claims.filter(isRefused).length >= refusalsWanted);
  const readiness = await readinessOf(scene);
  scene.line.state = "open";
  const claims = [...producer.claims];
  await until(
    "there is room",
    async () => {
      const claim = await producer.send({ noise: "" });
      claims.push(claim);
      return claim.answer !== undefined && !isRefused(claim);
    },
    roomWithinMs,
  );
  const told = async (): Promise<string | undefined> => {
    const now = await readinessOf(scene);
    return now.includes(warning) ? undefined : now;
  };
  const readinessAfter = await until("the warning is settled", told, settledWithinMs);
  const after: Claim[] = [];
  for (let no = 0; no < requestsAfter; no++) after.push(await producer.send());
  const held = heldOf(await scene.metrics());
  await oracle.settle();
  const recorded = recordedIds(scene);
  return {
    figures: oracle.figures,
    served: claims.filter((claim) => !isRefused(claim)).length,
    refused: claims.filter(isRefused).length,
    unrecorded: [...claims, ...after].filter(
      (claim) => claim.answer !== undefined && !isRefused(claim) && !recorded.has(claim.id),
    ),
    held,
    statusesAfter: new Set(after.flatMap(({ answer }) => answer?.status ?? [])),
    readiness,
    readinessAfter,
  };
}

/** Of /readyz, for want of room. */
export const warning = "spool_blocking";

const isRefused = ({ answer }: Claim): boolean => answer?.status === 503;

async function readinessOf({ edge }: Scene): Promise<string> {
  return (await fetch(`http://127.0.0.1:${edge.ports.metrics}/readyz`)).text();
}

function heldOf(metrics: string): number {
  const values = metrics.matchAll(/^accel_agent_log_held_total(?:\{[^}]*\})? (\d+)$/gm);
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}

function recordedIds({ storeDir }: Scene): ReadonlySet<number> {
  const { rows } = new StoreReader(storeDir).news();
  return new Set(
    rows.flatMap(({ line }) => {
      const record = parseRecord(line);
      return (record && claimIdOf(record)) ?? [];
    }),
  );
}
