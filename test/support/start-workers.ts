// A pool with its workers, for tests that publish afterwards: nothing is left running when they cannot start.

import {
  openWorkers,
  type WorkerPool,
  type WorkerPoolOptions,
} from "../../src/agent/accelerator/pool/workers.ts";

export async function startWorkers(options: WorkerPoolOptions): Promise<WorkerPool> {
  const pool = await openWorkers(options);
  try {
    await pool.start();
  } catch (error) {
    await pool[Symbol.asyncDispose]();
    throw error;
  }
  return pool;
}
