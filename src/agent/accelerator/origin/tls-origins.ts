// The client for origins over TLS, loaded where a site has such an origin: undici is a third of the code of a worker, and most hosts' origins are asked without TLS.

import type { ServingState } from "../../../core/serving/serving-state.ts";
import type { TlsPool } from "./tls-pool.ts";
import type { OriginConnections, PoolOptions, WireEvents, WireRequest } from "./wire-request.ts";

let pools: { readonly TlsPool: typeof TlsPool } | undefined;

/** Loads it once. Whoever has a state with an origin over TLS awaits this before the state is in force, so that no visitor waits for it. */
export async function loadTlsOrigins(): Promise<void> {
  pools ??= await import("./tls-pool.ts");
}

export function hasTlsOrigin({ domains }: ServingState): boolean {
  return domains.some(({ hosts }) =>
    hosts.some(({ site }) => site?.backend?.urls.some((url) => isTls.test(url)) === true),
  );
}

export const isTls = /^https:/i;

/** Opens connections to one origin over TLS. Whoever asks before the client is loaded waits for that. */
export function openTlsPool(options: PoolOptions): OriginConnections {
  return pools === undefined ? new PoolToCome(options) : new pools.TlsPool(options);
}

/** Connections over TLS whose client is being loaded. */
export class PoolToCome implements OriginConnections {
  readonly #pool: Promise<OriginConnections>;

  constructor(options: PoolOptions) {
    this.#pool = import("./tls-pool.ts").then((loaded) => new (pools = loaded).TlsPool(options));
    this.#pool.catch(() => {}); // Told to whoever asks.
  }

  ask(request: WireRequest, events: WireEvents): void {
    this.#pool.then(
      (pool) => pool.ask(request, events),
      (error: unknown) => {
        events.onOver();
        events.onFailure(error);
      },
    );
  }

  async destroy(): Promise<void> {
    const pool = await this.#pool.catch(() => undefined);
    await pool?.destroy();
  }
}
