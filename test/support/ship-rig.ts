// A shipper over a real spool (without its thread) and a strict central that answers as a test wants.

import type { Posted } from "../../src/agent/requests/ship/ship-plan.ts";
import {
  startShipper,
  type ShippedBatch,
  type ShipSource,
  type Shipper,
} from "../../src/agent/requests/ship/shipper.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { SpoolRig } from "./spool-rig.ts";
import { until } from "./until.ts";

export type Post = (batch: ShippedBatch, take: () => Posted) => Posted | Promise<Posted>;

export class ShipRig extends SpoolRig implements AsyncDisposable {
  readonly health = new Health(() => new Date(0));
  readonly sent: ShippedBatch[] = [];
  readonly canaries: number[] = [];
  post: Post = (_, take) => take();
  monotonicMs = (): number => performance.now();
  shipper: Shipper | undefined;
  #told = Promise.withResolvers<void>();

  start(): void {
    this.shipper = startShipper({
      spool: {
        facts: () => this.spool.facts(),
        balance: async () => undefined,
        next: async (signal) => {
          if (signal.aborted) return;
          const stopped = Promise.withResolvers<void>();
          signal.addEventListener("abort", () => stopped.resolve(), { once: true });
          await Promise.race([this.#told.promise, stopped.promise]);
        },
        read: async (lane, limits) => this.spool.read(lane, limits),
        confirm: async (lane, mark) => {
          this.spool.confirm(lane, mark);
          this.tell();
        },
        poison: async (lane, seq, why) => this.spool.poison(lane, seq, why),
      } satisfies ShipSource,
      post: async (batch) => {
        this.sent.push(batch);
        return this.post(batch, () => this.central.post(batch));
      },
      onCanary: (at) => void this.canaries.push(at),
      random: () => 0.1,
      monotonicMs: () => this.monotonicMs(),
      registry: new Registry(),
      health: this.health,
      log: silentLog(),
    });
  }

  tell(): void {
    this.#told.resolve();
    this.#told = Promise.withResolvers();
  }

  async delivered(): Promise<void> {
    await until("everything delivered", () =>
      this.lanes().every(({ mark, durable }) => mark === durable),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shipper?.[Symbol.asyncDispose]();
  }
}
