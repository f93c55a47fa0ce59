// The spool thread, with a way to end it in the middle of anything, as SIGKILL does.

import { BroadcastChannel } from "node:worker_threads";
import type { SpoolClient } from "../../src/agent/requests/ship/spool-client.ts";

const spooler = new URL("../../src/agent/spooler.ts", import.meta.url);

/** The `entry` of a spool client. */
export const killableSpooler = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { BroadcastChannel, workerData } from "node:worker_threads";
    import "${spooler.href}";
    const end = new BroadcastChannel(workerData.bootEpoch);
    end.unref();
    end.onmessage = () => process.exit(1);
  `)}`,
);

export async function killSpooler(spool: SpoolClient, bootEpoch: string): Promise<void> {
  const channel = new BroadcastChannel(bootEpoch);
  channel.postMessage("now");
  await spool.died;
  channel.close();
}
