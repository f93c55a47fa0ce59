// A closed loop of requests over kept connections: how many a second a server answers.

import { Pool } from "undici";

export type LoadResult = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
};

export async function measure(
  origin: string,
  path: string,
  {
    connections = 16,
    seconds = 3,
    headers = {},
  }: { connections?: number; seconds?: number; headers?: Readonly<Record<string, string>> } = {},
): Promise<LoadResult> {
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const tookMs: number[] = [];
  let failed = 0;
  const one = async (until: number, counted: boolean): Promise<void> => {
    while (performance.now() < until) {
      const began = performance.now();
      const { statusCode, body } = await pool.request({ path, method: "GET", headers });
      await body.dump();
      if (statusCode !== 200) failed++;
      if (counted) tookMs.push(performance.now() - began);
    }
  };
  const lanes = (until: number, counted: boolean): Promise<unknown> =>
    Promise.all(Array.from({ length: connections }, () => one(until, counted)));
  await lanes(performance.now() + 500, false);
  const began = performance.now();
  await lanes(began + seconds * 1_000, true);
  const elapsedS = (performance.now() - began) / 1_000;
  await pool.close();
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number => tookMs[Math.floor(tookMs.length * share)] ?? 0;
  return { perSecond: tookMs.length / elapsedS, p50Ms: at(0.5), p99Ms: at(0.99), failed };
}

export function show(
  name: string,
  { perSecond, p50Ms, p99Ms, failed }: LoadResult,
  bare: LoadResult,
): string {
  const ratio = (perSecond / bare.perSecond).toFixed(2);
  return `${name.padEnd(34)} ${perSecond.toFixed(0).padStart(7)}/s  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms  failed ${failed}  ${ratio} × bare`;
}
