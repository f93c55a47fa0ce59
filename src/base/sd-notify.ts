// Tells systemd that the program is ready, reloading or stopping, and feeds its watchdog, through the
// `systemd-notify` program: Node has no datagram unix sockets, and one spawn per 20 s is cheaper than a
// native addon. Outside systemd (no NOTIFY_SOCKET) it does nothing.

import { execFile } from "node:child_process";
import { Mutex } from "./mutex.ts";

export type SdNotify = {
  /**
   * Sends sd_notify(3) assignments, e.g. `READY=1`, `STATUS=…`, in the order of the calls. Resolves when they
   * are sent or given up; never throws.
   */
  send(...assignments: readonly string[]): Promise<void>;
  /** The WatchdogSec of the unit in milliseconds; undefined if no watchdog is set. */
  readonly watchdogMs: number | undefined;
};

const spawnTimeoutMs = 5_000;

export function createSdNotify(env: NodeJS.ProcessEnv): SdNotify {
  const socket = env["NOTIFY_SOCKET"];
  // A RELOADING that overtook its READY would leave the unit reloading for ever.
  const order = new Mutex();
  const watchdogUs = Number(env["WATCHDOG_USEC"] ?? 0);
  return {
    watchdogMs: socket !== undefined && watchdogUs > 0 ? watchdogUs / 1_000 : undefined,
    async send(...assignments) {
      if (socket === undefined) return;
      await order.run(async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        execFile(
          "systemd-notify",
          [`--pid=${process.pid}`, ...assignments],
          { timeout: spawnTimeoutMs, env },
          () => resolve(),
        );
        await promise;
      });
    },
  };
}
