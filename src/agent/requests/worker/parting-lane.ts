// A worker's lane in an agent that hands over to its successor (decision 0114). At the hand-over the lane ends like that of a worker that stops; what is still
// answered afterwards has its records carried to the successor, which numbers them in a lane of its own. So each record is in one of the two, and the spool
// has one writer.

import type { MessagePort } from "node:worker_threads";
import type { CanaryLine, RequestRecord } from "../../../wire/request-log.ts";
import type { LaneWriter } from "./lane-writer.ts";

export class PartingLane {
  readonly #lane: Pick<LaneWriter, "accept" | "begins" | "wake" | "claim" | "close">;
  /** To main's LateRecords. */
  readonly #late: Pick<MessagePort, "postMessage">;
  #hasParted = false;

  constructor(
    lane: Pick<LaneWriter, "accept" | "begins" | "wake" | "claim" | "close">,
    late: Pick<MessagePort, "postMessage">,
  ) {
    this.#lane = lane;
    this.#late = late;
  }

  wake(): void {
    if (!this.#hasParted) this.#lane.wake();
  }

  /** See LaneWriter. Behind the hand-over nothing has to be waited for. */
  begins(): Promise<void> | undefined {
    return this.#hasParted ? undefined : this.#lane.begins();
  }

  /** See LaneWriter. Behind the hand-over it is the successor's spool that has room or tells of a gap. */
  claim(): boolean {
    return this.#hasParted || this.#lane.claim();
  }

  accept(record: RequestRecord | CanaryLine | string, isClaimed = false): void {
    if (!this.#hasParted) this.#lane.accept(record, isClaimed);
    else this.#late.postMessage(typeof record === "string" ? record : JSON.stringify(record));
  }

  /** Ends the lane: resolves when all that it accepted is durable or told as a gap. What is accepted from this call on is carried to the successor. */
  async part(): Promise<void> {
    if (this.#hasParted) return;
    this.#hasParted = true;
    await this.#lane.close();
  }

  async close(): Promise<void> {
    if (!this.#hasParted) await this.#lane.close();
  }
}
