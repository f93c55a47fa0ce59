// What one visitor may hold of a worker: so many connections, and so many requests that are not finished. A visitor is his address (visitor-names.ts).
//
// Each worker counts for itself: the kernel spreads the connections of an address over the workers, and what a dead worker counted is gone with it. A trusted proxy
// has as many connections as it likes; whom it speaks for is judged by the requests.

import type { ClientAddresses } from "../../../core/http/client-address.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { sendText } from "./answer.ts";
import type { Arrival, Exchange } from "./exchange.ts";
import { VisitorNames } from "./visitor-names.ts";

export type VisitorLimits = {
  /** Of one address and worker; 0: no limit. */
  readonly connectionsMax: number;
  readonly requestsMax: number;
};

export type VisitorSharesDeps = {
  readonly limits: VisitorLimits;
  readonly clients: Pick<ClientAddresses, "ofRequest">;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
};

const retryAfterS = 1;

export class VisitorShares {
  readonly #deps: VisitorSharesDeps;
  readonly #connections: Held;
  readonly #requests: Held;
  readonly #names = new VisitorNames();

  constructor(deps: VisitorSharesDeps) {
    this.#deps = deps;
    this.#connections = new Held(deps.limits.connectionsMax);
    this.#requests = new Held(deps.limits.requestsMax);
  }

  /** Counts a connection until it closes. False: its visitor has too many, and it was closed. */
  admit({ socket, peer }: Pick<Arrival, "socket" | "peer">): boolean {
    if (peer === undefined || peer.isProxied) return true;
    const visitor = this.#names.of(peer.text);
    if (this.#connections.enter(visitor)) {
      socket.once("close", () => this.#connections.leave(visitor));
      return true;
    }
    this.#tell("connection", peer.text);
    socket.destroy();
    return false;
  }

  /** Wraps `answer`: a request counts until it is answered. One too many is told 429. */
  before<Rest extends unknown[]>(
    answer: (exchange: Exchange, ...rest: Rest) => Promise<void>,
  ): (exchange: Exchange, ...rest: Rest) => Promise<void> {
    return async (exchange, ...rest) => {
      const { peer } = exchange.connection;
      if (peer === undefined) {
        await answer(exchange, ...rest);
        return;
      }
      const client = exchange.client ?? this.#deps.clients.ofRequest(peer, exchange.fields);
      const address = client.text;
      const visitor = this.#names.of(address);
      if (!this.#requests.enter(visitor)) {
        this.#tell("request", address);
        sendText(exchange, 429, "Too many requests of this address are not finished.", [
          ["Retry-After", String(retryAfterS)],
        ]);
        return;
      }
      try {
        await answer(exchange, ...rest);
      } finally {
        this.#requests.leave(visitor);
      }
    };
  }

  #tell(what: "connection" | "request", address: string): void {
    const { metrics, problems } = this.#deps;
    metrics.accel_agent_visitor_refused_total.inc({ what });
    problems.tell("warn", null, `a ${what} was refused: its address has too many`, address);
  }
}

/** What each visitor holds at present. */
class Held {
  readonly #max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.#max = max === 0 ? Infinity : max;
  }

  enter(visitor: string): boolean {
    const count = this.#counts.get(visitor) ?? 0;
    if (count >= this.#max) return false;
    this.#counts.set(visitor, count + 1);
    return true;
  }

  leave(visitor: string): void {
    const count = this.#counts.get(visitor) ?? 0;
    if (count > 1) this.#counts.set(visitor, count - 1);
    else this.#counts.delete(visitor);
  }
}
