// A host of a rollout: the agent's own asking against a real central, over an installer and a process that are simulated.

import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/base/log.ts";
import type { InstallerOutcome } from "../../src/core/rollout/order-heeding.ts";
import type { ReleaseOrder } from "../../src/core/rollout/rollout.ts";
import { ReleaseAsking, type ReleaseFacts } from "../../src/agent/rollout/release-asking.ts";
import { decodeReleaseWanted, type ReleaseTold } from "../../src/wire/rollout.ts";
import { reportOf, type FakeAgent } from "./fake-agent.ts";
import { until } from "./until.ts";

export type HostBehaviour =
  | "good"
  /** Runs the release, and is not heard any more. */
  | "dies"
  /** Does not start with the release: the installer goes back. */
  | "crashes"
  | "warns"
  | "no-package";

export type RolledHostOptions = {
  readonly agent: FakeAgent;
  readonly instanceId: string;
  readonly had: string;
  readonly release: string;
  readonly behaviour?: HostBehaviour;
  readonly takes?: ReleaseTold["takes"];
  /** Milliseconds that an installation takes. */
  readonly installMs?: number;
};

/** How soon it asks again, whatever central says: the test is not to wait for it. */
const askMs = 100;

export class RolledHost implements AsyncDisposable {
  readonly #options: RolledHostOptions;
  readonly #stop = new AbortController();
  readonly instanceId: string;
  /** Versions that ran, the oldest first. */
  readonly ran: string[] = [];
  readonly orders: ReleaseOrder[] = [];
  version: string;
  #boot = 0;
  #asking: ReleaseAsking | undefined;
  #outcome: InstallerOutcome | undefined;
  #installing: Promise<void> = Promise.resolve();

  private constructor(options: RolledHostOptions) {
    this.#options = options;
    this.instanceId = options.instanceId;
    this.version = options.had;
  }

  /** Resolves when central knows the host. */
  static async start(options: RolledHostOptions): Promise<RolledHost> {
    const host = new RolledHost(options);
    const report = {
      ...reportOf(options.instanceId, 0),
      agent_version: options.had,
      host_name: options.instanceId,
    };
    const answer = await options.agent.call("/reports", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(report),
    });
    if (answer.status !== 204) throw new Error(`the report: ${answer.status}`);
    host.#start(options.had);
    return host;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#installing;
    await this.#asking?.[Symbol.asyncDispose]();
  }

  /** Somebody restarts the agent. */
  async restart(): Promise<void> {
    await this.#asking?.[Symbol.asyncDispose]();
    this.#start(this.version);
  }

  #start(version: string): void {
    const { agent } = this.#options;
    this.version = version;
    this.ran.push(version);
    this.#asking = new ReleaseAsking({
      instanceId: this.instanceId,
      bootId: `boot-${this.#boot++}`,
      version,
      facts: async () => this.#facts(),
      installer: {
        takes: () => this.#options.takes ?? "yes",
        lying: () => undefined, // It is taken at once.
        outcome: () => this.#outcome,
        withdraw: async () => undefined,
        ask: async (order) => this.#ask(order),
      },
      tell: async (told, signal) => {
        const answer = await agent.call("/release", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(told),
          signal,
        });
        const decoded = decodeReleaseWanted(await answer.json());
        if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
        return decoded.value;
      },
      now: () => new Date(),
      random: Math.random,
      log: silentLog(),
      stop: this.#stop.signal,
      timings: { first: 10, failed: askMs, least: 20, most: askMs },
    });
  }

  #facts(): ReleaseFacts {
    const isBad = this.#options.behaviour === "warns" && this.version === this.#options.release;
    const warnings = isBad ? ["disk_low", "origin_full"] : ["disk_low"];
    return { ready: true, requests: 10_000, errors: 10, warnings };
  }

  #ask(order: ReleaseOrder): void {
    this.orders.push(order);
    const before = this.#installing;
    this.#installing = before.then(async () => this.#install(order));
  }

  async #install(order: ReleaseOrder): Promise<void> {
    const { behaviour = "good", installMs = 50, release } = this.#options;
    const tell = (state: InstallerOutcome["state"], reason = ""): void => {
      this.#outcome = { id: order.id, state, reason, writtenMs: Date.now() };
    };
    tell("installing");
    await sleep(installMs);
    if (this.#stop.signal.aborted) return;
    const isBad = order.version === release;
    if (isBad && behaviour === "no-package")
      return tell("failed", `E: Version '${release}' for 'accel-agent' was not found`);
    await this.#asking?.[Symbol.asyncDispose]();
    if (isBad && behaviour === "dies") {
      tell("done");
      this.ran.push(order.version);
      this.version = order.version;
      return;
    }
    if (isBad && behaviour === "crashes") {
      tell("returned", `${release} did not stay up: TypeError: x is not a function`);
      return this.#start(this.version);
    }
    tell("done");
    this.#start(order.version);
  }

  /** Resolves when an installation is not under way. */
  async quiet(): Promise<void> {
    await until("no installation is under way", async () => {
      const now = this.#installing;
      await now;
      return now === this.#installing;
    });
  }
}
