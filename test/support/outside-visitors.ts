// Visitors of the outside scene: real request lines, a few kept connections an agent, each answer entered into the ledger.

import { Agent, request } from "node:http";
import type { Socket } from "node:net";
import type { Ledger } from "./outside-ledger.ts";
import type { OutsideAgent } from "./outside-scene.ts";

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  readonly cacheStatus: string;
};
export type AskOptions = {
  readonly method?: string;
  readonly ip?: string;
  readonly userAgent?: string;
};

const connectionsPerAgent = 4;
const answerWithinMs = 30_000;
export const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

export class Visitors implements Disposable {
  readonly #ledger: Ledger;
  readonly #pools = new Map<string, Agent>();
  /** Bytes that earlier answers of a connection had. */
  readonly #read = new WeakMap<Socket, number>();
  /** What each agent told that it stored, or answered from what it had: by agent, exact targets. */
  readonly held = new Map<string, Set<string>>();
  failures = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  heldBy(agent: OutsideAgent): Set<string> {
    const held = this.held.get(agent.name) ?? new Set<string>();
    this.held.set(agent.name, held);
    return held;
  }

  /** The connections of an agent that is about to be stopped. */
  leave(agent: OutsideAgent): void {
    this.#pools.get(agent.name)?.destroy();
    this.#pools.delete(agent.name);
  }

  async ask(agent: OutsideAgent, target: string, options: AskOptions = {}): Promise<Answer> {
    const { method = "GET", ip = "198.51.100.7", userAgent = firefox } = options;
    const { promise, resolve, reject } = Promise.withResolvers<Answer & { bytes: number }>();
    const outgoing = request(
      {
        host: "127.0.0.1",
        port: agent.port,
        path: target,
        method,
        agent: this.#pool(agent),
        headers: {
          host: agent.customer.domain,
          "user-agent": userAgent,
          "x-forwarded-for": ip,
          ...(method === "POST" ? { "content-length": "0" } : {}),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        // Before the connection is given back: the pool takes it from the response.
        const { socket } = response;
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const before = this.#read.get(socket) ?? 0;
          this.#read.set(socket, socket.bytesRead);
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
            cacheStatus: String(response.headers["cache-status"] ?? ""),
            bytes: socket.bytesRead - before,
          });
        });
      },
    );
    outgoing.setTimeout(answerWithinMs, () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", reject);
    outgoing.end();
    try {
      const { bytes, ...answer } = await promise;
      this.#enter(agent, method, target, answer, bytes);
      return answer;
    } catch (error) {
      this.failures++;
      throw error;
    }
  }

  #enter(
    agent: OutsideAgent,
    method: string,
    target: string,
    { status, cacheStatus }: Answer,
    bytes: number,
  ): void {
    const cache = cacheOf(status, cacheStatus);
    this.#ledger.add({
      agent: agent.name,
      siteId: agent.site.id,
      domain: agent.customer.domain,
      method,
      target,
      status,
      cache,
      bytes,
    });
    if (method === "GET" && (cache === "hit" || cacheStatus.includes("stored")))
      this.heldBy(agent).add(target);
  }

  #pool(agent: OutsideAgent): Agent {
    const known = this.#pools.get(agent.name);
    if (known !== undefined) return known;
    const pool = new Agent({ keepAlive: true, maxSockets: connectionsPerAgent });
    this.#pools.set(agent.name, pool);
    return pool;
  }

  [Symbol.dispose](): void {
    for (const pool of this.#pools.values()) pool.destroy();
  }
}

/** The `cache` of a record, as far as a visitor can tell it from Cache-Status (RFC 9211 §2). */
function cacheOf(status: number, cacheStatus: string): string {
  if (cacheStatus === "") return status === 403 ? "blocked" : "none";
  if (/; hit(?:;|$)/.test(cacheStatus)) return "hit";
  if (cacheStatus.includes("detail=stale-if-error")) return "stale";
  // What HEAD is answered with, and a fetch that a clear overtook, say no detail.
  return /fwd=(?:bypass|method)|detail=/.test(cacheStatus) ? "pass" : "miss";
}
