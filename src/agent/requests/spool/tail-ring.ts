// The newest records as they come, for readers of `accel-agent logs tail`. The last MiB of groups is kept by
// reference. Each follower is sent groups until too many are on their way to it; what comes then is left out
// and counted. Without followers it costs nothing but that MiB.
//
//   reader → ring   "more": the last message was taken
//   ring → reader   {payload: NDJSON | undefined, missed: records left out before it, isLast}

import type { MessagePort } from "node:worker_threads";
import { giveBack } from "../../../base/give-back.ts";

export type TailMessage = {
  readonly payload: Uint8Array | undefined;
  readonly missed: number;
  /** Whether nothing follows. */
  readonly isLast: boolean;
};

type Group = { readonly count: number; readonly payload: Uint8Array };
type Follower = { readonly port: MessagePort; underWay: number; missed: number };

const ringBytesMax = 2 ** 20; // Some 2,500 records of 400 bytes.
/**
 * The most messages on their way to a follower. A group has some 128 KiB at most, and is copied once for each
 * follower.
 */
const underWayMax = 8;
const followersMax = 8;

export class TailRing implements Disposable {
  readonly #groups: Group[] = [];
  readonly #followers = new Set<Follower>();
  #bytes = 0;

  /** Takes a group, whose `payload` is the ring's alone from now on. */
  take(group: Group): void {
    this.#groups.push(group);
    this.#bytes += group.payload.byteLength;
    while (this.#bytes > ringBytesMax && this.#groups.length > 1) this.#dropOldest();
    for (const follower of this.#followers) this.#offer(follower, group);
  }

  /** Sends what is in the ring and then, with `follow`, what comes, until the port closes. */
  open(port: MessagePort, follow: boolean): void {
    const isLast = !follow || this.#followers.size >= followersMax;
    const payload = this.#all();
    port.postMessage({ payload, missed: 0, isLast } satisfies TailMessage, [payload.buffer]);
    if (isLast) return port.close();
    const follower: Follower = { port, underWay: 1, missed: 0 };
    this.#followers.add(follower);
    port.on("message", () => this.#taken(follower));
    port.on("close", () => this.#followers.delete(follower));
  }

  [Symbol.dispose](): void {
    for (const { port } of this.#followers) port.close();
  }

  #dropOldest(): void {
    const oldest = this.#groups.shift();
    if (oldest === undefined) return;
    this.#bytes -= oldest.payload.byteLength;
    giveBack(oldest.payload);
  }

  #all(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#bytes);
    let at = 0;
    for (const { payload } of this.#groups) {
      all.set(payload, at);
      at += payload.byteLength;
    }
    return all;
  }

  #offer(follower: Follower, { count, payload }: Group): void {
    if (follower.underWay >= underWayMax) {
      follower.missed += count;
      return;
    }
    this.#send(follower, payload);
  }

  #taken(follower: Follower): void {
    follower.underWay--;
    // The count is told even if no further records come.
    if (follower.underWay === 0 && follower.missed > 0) this.#send(follower, undefined);
  }

  #send(follower: Follower, payload: Uint8Array | undefined): void {
    const { missed } = follower;
    follower.port.postMessage({ payload, missed, isLast: false } satisfies TailMessage);
    follower.missed = 0;
    follower.underWay++;
  }
}
