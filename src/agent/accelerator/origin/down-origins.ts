// The verdicts of the active checks of origins, as a worker hears them of main (origin-checks.ts).

import type { MessagePort } from "node:worker_threads";
import type { OriginPools } from "./origin-pools.ts";

/** Follows the checks inside a worker. */
export function followOriginChecks(origins: OriginPools, port: MessagePort): void {
  // The other end is OriginChecks.
  port.on("message", (down) => origins.setDown(new Set(down as readonly string[])));
  port.unref();
}
