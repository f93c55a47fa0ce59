// The addresses at which the agent itself listens, which no backend may be.

import type { ListenAddress } from "../base/settings-fields.ts";
import { reachesOwn, type OwnListener } from "../core/serving/own-listeners.ts";
import { localAddresses } from "./accelerator/origin/origin-connector.ts";
import type { AgentSettings } from "./settings/fields.ts";

/** Returns every setting that is an address to listen on. */
export function listenersOf(settings: AgentSettings): readonly OwnListener[] {
  return Object.values(settings).filter(
    (value): value is ListenAddress =>
      typeof value === "object" && value !== null && "host" in value && "port" in value,
  );
}

/**
 * Makes a guard that refuses backends that are the agent itself, for it would ask itself in an endless loop.
 * Names are judged again when they are resolved.
 */
export function ownListenerGuard(own: readonly OwnListener[]): (url: URL) => string | undefined {
  return ({ hostname, port, protocol }) => {
    const asked = Number(port === "" ? (protocol === "https:" ? 443 : 80) : port);
    return reachesOwn(hostname, asked, own, () => localAddresses())
      ? "is a listener of the agent itself"
      : undefined;
  };
}
