// A pool with its workers, for tests that publish afterwards: nothing is left running when they cannot start.

import {
  openWorkers,
  type WorkerPool,
  type WorkerPoolOptions,
} from "../../src/agent/accelerator/pool/workers.ts";
import { SocketCalls } from "../../src/base/socket-calls.ts";

export type StartOptions = Omit<WorkerPoolOptions, "sockets"> &
  Partial<Pick<WorkerPoolOptions, "sockets">>;

export async function startWorkers(options: StartOptions): Promise<WorkerPool> {
  const pool = await openWorkers({ sockets: { calls: new SocketCalls() }, ...options });
  try {
    await pool.start();
  } catch (error) {
    await pool[Symbol.asyncDispose]();
    throw error;
  }
  return pool;
}
