// Visitors at a fixed rate: requests are due at fixed times whether or not those before were answered, and each takes as long as from its due time to its answer.

import { Pool } from "undici";

export type Paced = {
  readonly perSecond: number;
  readonly tookMs: readonly number[];
  readonly hits: number;
  readonly failed: number;
};

export type PacedOptions = {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly perSecond: number;
  readonly seconds: number;
};

const connections = 64;

export async function visitAtPace(options: PacedOptions): Promise<Paced> {
  const { origin, paths, headers, perSecond, seconds } = options;
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const tookMs: number[] = [];
  const counts = { hits: 0, failed: 0 };
  const one = async (path: string, dueMs: number): Promise<void> => {
    try {
      const answer = await pool.request({ path, method: "GET", headers });
      await answer.body.dump();
      if (answer.statusCode !== 200) counts.failed++;
      if (String(answer.headers["cache-status"]).includes("hit")) counts.hits++;
    } catch {
      counts.failed++;
    }
    tookMs.push(performance.now() - dueMs);
  };
  const began = performance.now();
  const total = Math.floor(perSecond * seconds);
  const asked: Promise<void>[] = [];
  while (asked.length < total) {
    // The first is due at once: counted from 0, each would go out a whole period late.
    const dueCount = Math.min(
      total,
      Math.floor(((performance.now() - began) / 1_000) * perSecond) + 1,
    );
    while (asked.length < dueCount) {
      const no = asked.length;
      asked.push(one(paths[no % paths.length] ?? "/", began + (no * 1_000) / perSecond));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(asked);
  await pool.close();
  return { perSecond: total / ((performance.now() - began) / 1_000), tookMs, ...counts };
}
