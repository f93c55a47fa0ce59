// The loop of the spool thread: it takes groups from workers' ports, syncs with one fdatasync what a few
// milliseconds bring, answers main's requests, and tells main facts.
//
// What earlier runs left is recovered first; then work is done in the order of arrival. A port that closes
// without `end` belongs to a worker that died; what it had sent has been received by then.

import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { messageOf } from "../../../core/faults.ts";
import { LaneWords } from "../worker/lane-words.ts";
import { Spool, type Feed } from "./spool.ts";
import type { SpoolFiles } from "./spool-files.ts";
import { TailRing } from "./tail-ring.ts";
import type {
  FromSpool,
  LaneBatch,
  LaneMessage,
  Request,
  SpoolInit,
  ToSpool,
} from "./spool-messages.ts";

/** The longest time until main learns of new records, and below until marks reach the disk. */
const factsDelayMs = 50;
const marksDelayMs = 100;
const tickMs = 1_000;

/** Runs the thread. `main` is its parent port. It ends when main says `close`. */
export function runSpoolThread(main: MessagePort, init: SpoolInit, files: SpoolFiles): void {
  const thread = new SpoolThread(main, init, files);
  main.on("message", (message: ToSpool) => thread.take(message));
}

class SpoolThread {
  readonly #main: MessagePort;
  readonly #init: SpoolInit;
  readonly #spool: Spool;
  readonly #heartbeat: Int32Array;
  readonly #feeds = new Map<MessagePort, Feed>();
  readonly #tail = new TailRing();
  readonly #timers = new Map<() => void, NodeJS.Timeout>();
  readonly #ticking: NodeJS.Timeout;

  constructor(main: MessagePort, init: SpoolInit, files: SpoolFiles) {
    this.#main = main;
    this.#init = init;
    this.#heartbeat = new Int32Array(init.heartbeat);
    this.#spool = new Spool({
      files,
      directory: init.directory,
      bytesMax: init.bytesMax,
      whenFull: init.whenFull,
      durability: init.durability,
      name16: init.name16,
      bootEpoch: init.bootEpoch,
      clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
      notice: (notice) => this.#tell({ type: "notice", notice }),
      crashed: (loss) => this.#tell({ type: "crashed", loss }),
    });
    this.#ticking = setInterval(() => this.#tick(), tickMs);
    this.#tick();
    this.#tellFacts();
  }

  take(message: ToSpool): void {
    if (message.type === "open") {
      this.#openLane(message.shared, message.port);
      return;
    }
    if (message.type === "tail") {
      this.#tail.open(message.port, message.follow);
      return;
    }
    const { id, request } = message;
    try {
      const batch = this.#do(request);
      const answer = { facts: this.#spool.facts(), batch };
      const transfer = batch === undefined ? [] : [batch.body.buffer];
      this.#main.postMessage({ type: "answer", id, answer } satisfies FromSpool, transfer);
    } catch (error) {
      this.#tell({ type: "fault", id, message: messageOf(error) });
    }
    if (request.type === "close") this.#main.close();
  }

  #do(request: Request): LaneBatch | undefined {
    switch (request.type) {
      case "read":
        return this.#spool.read(request.lane, request.limits);
      case "confirm":
        this.#spool.confirm(request.lane, request.mark);
        this.#soon(this.#persist, marksDelayMs);
        return undefined;
      case "poison":
        this.#spool.poison(request.lane, request.seq, request.why);
        return undefined;
      case "facts":
        return undefined;
      case "close":
        this.#close();
        return undefined;
      default:
        return request satisfies never;
    }
  }

  #openLane(shared: SharedArrayBuffer, port: MessagePort): void {
    this.#feeds.set(port, this.#spool.open(new LaneWords(shared)));
    port.on("message", (message: LaneMessage) => this.#receive(port, message));
    port.on("close", () => this.#end(port));
    this.#soon(this.#tellFacts, factsDelayMs);
  }

  #receive(port: MessagePort, message: LaneMessage): void {
    const feed = this.#feeds.get(port);
    if (feed === undefined) return;
    if (message.type === "end") {
      this.#end(port);
      port.postMessage({ type: "ended" });
      return;
    }
    this.#spool.receive(feed, message);
    if (message.type === "group") this.#tail.take(message);
    if (this.#spool.unsyncedBytes >= this.#init.fsyncBytes || this.#spool.isShort(feed))
      this.#sync();
    else this.#soon(this.#sync, this.#init.fsyncIntervalMs);
  }

  #end(port: MessagePort): void {
    const feed = this.#feeds.get(port);
    if (feed === undefined) return;
    this.#feeds.delete(port);
    this.#spool.end(feed);
    this.#soon(this.#tellFacts, factsDelayMs);
    this.#soon(this.#persist, marksDelayMs);
  }

  readonly #sync = (): void => {
    this.#cancel(this.#sync);
    this.#spool.sync();
    this.#soon(this.#tellFacts, factsDelayMs);
  };

  readonly #persist = (): void => {
    this.#cancel(this.#persist);
    if (this.#spool.isDirty) this.#spool.persist();
  };

  readonly #tellFacts = (): void => {
    this.#cancel(this.#tellFacts);
    this.#tell({ type: "facts", facts: this.#spool.facts() });
  };

  #tick(): void {
    Atomics.add(this.#heartbeat, 0, 1);
    this.#spool.tick();
    this.#persist(); // Tried again if the disk refused it before.
    // While nobody is served, nothing else causes facts to be told.
    this.#soon(this.#tellFacts, factsDelayMs);
  }

  /** Closes after taking what workers have sent, even what is still on its way to this thread. */
  #close(): void {
    clearInterval(this.#ticking);
    this.#tail[Symbol.dispose]();
    for (const port of this.#feeds.keys()) {
      for (
        let next = receiveMessageOnPort(port);
        next !== undefined;
        next = receiveMessageOnPort(port)
      )
        this.#receive(port, parseLaneMessage(next.message));
      port.removeAllListeners("close");
      port.close();
    }
    this.#spool.close();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  /** Runs an action once within the time, however often it is asked for. */
  #soon(action: () => void, ms: number): void {
    if (!this.#timers.has(action)) this.#timers.set(action, setTimeout(action, ms));
  }

  #cancel(action: () => void): void {
    clearTimeout(this.#timers.get(action));
    this.#timers.delete(action);
  }

  #tell(message: FromSpool): void {
    this.#main.postMessage(message);
  }
}

/** Takes the type on trust, for only workers of this program hold the other end. */
function parseLaneMessage(message: unknown): LaneMessage {
  return message as LaneMessage;
}
