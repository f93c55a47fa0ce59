// Two connections joined: what comes from one goes to the other, and neither is read faster than the other takes it in.
//
//   open      both ways; an end of one way is passed on, and the other way goes on
//   parting   we end it: a WebSocket visitor gets a Close frame behind the frame that is under way, if that ends in time; then both are closed
//   closed    told once

import type { Duplex } from "node:stream";
import { closeFrame, FrameEnds } from "./frame-ends.ts";

/** Why an upgrade ended, as the metric says it. */
export type UpgradeEnd = "closed" | "idle" | "unwelcome" | "drained";

/** Close codes (RFC 6455 §7.4.1): going away, policy violation. */
const closeCodes: Readonly<Record<Exclude<UpgradeEnd, "closed">, number>> = {
  idle: 1001,
  drained: 1001,
  unwelcome: 1008,
};

/** The time for the frame under way to end, and again for the visitor to take the Close frame. */
const partingMs = 1_000;
/** The time for the visitor to take what the origin sent before it ended. */
const takeMs = 60_000;

export type JointOptions = {
  readonly visitor: Duplex;
  readonly origin: Duplex;
  readonly isWebSocket: boolean;
  readonly steadyMs: () => number;
  /** Called once, when both connections are closed or being closed. */
  readonly onEnd: (end: UpgradeEnd) => void;
};

export class Joint {
  readonly #options: JointOptions;
  readonly #frames: FrameEnds | undefined;
  #end: UpgradeEnd = "closed";
  #state: "open" | "parting" | "closing" | "closed" = "open";
  #timer: NodeJS.Timeout | undefined;
  /** When bytes last came from either side, by the steady clock. */
  lastMs: number;
  fromVisitorBytes = 0;
  fromOriginBytes = 0;
  #closeBytes = 0;

  constructor(options: JointOptions) {
    this.#options = options;
    this.#frames = options.isWebSocket ? new FrameEnds() : undefined;
    this.lastMs = options.steadyMs();
    const { visitor, origin } = options;
    for (const side of [visitor, origin]) side.on("error", () => {}); // Its close tells enough.
    visitor.once("close", () => this.#closed());
    origin.once("close", () => this.#originClosed());
    visitor.once("end", () => origin.end());
    origin.once("end", () => this.#endVisitor());
    visitor.on("drain", () => origin.resume());
    origin.on("drain", () => visitor.resume());
    visitor.on("data", (bytes: Buffer) => this.#fromVisitor(bytes));
    origin.on("data", (bytes: Buffer) => this.#fromOrigin(bytes));
    visitor.resume();
    origin.resume();
    if (origin.destroyed) this.#originClosed();
  }

  /** The bytes written to the visitor, a Close frame of ours included. */
  get sentBytes(): number {
    return this.fromOriginBytes + this.#closeBytes;
  }

  /** Ends both sides; a WebSocket visitor is told by a Close frame if that is possible. */
  part(end: Exclude<UpgradeEnd, "closed">): void {
    if (this.#state !== "open") return;
    this.#state = "parting";
    this.#end = end;
    const { origin, visitor } = this.#options;
    visitor.pause();
    if (this.#frames === undefined || this.#frames.isAtEnd || this.#frames.isClosed) {
      this.#sayClose();
      return;
    }
    this.#timer = setTimeout(() => this.#endVisitor(), partingMs);
    origin.resume(); // For the rest of the frame, also for a visitor who reads slowly.
  }

  #fromVisitor(bytes: Buffer): void {
    if (this.#state !== "open") return;
    const { origin, visitor } = this.#options;
    this.lastMs = this.#options.steadyMs();
    this.fromVisitorBytes += bytes.length;
    if (origin.writable && !origin.write(bytes)) visitor.pause();
  }

  #fromOrigin(bytes: Buffer): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    const { origin, visitor } = this.#options;
    const end = this.#frames?.take(bytes);
    const isLast = this.#state === "parting" && end !== undefined;
    const passed = isLast ? bytes.subarray(0, end) : bytes;
    this.lastMs = this.#options.steadyMs();
    this.fromOriginBytes += passed.length;
    if (visitor.writable && !visitor.write(passed)) origin.pause();
    if (isLast) this.#sayClose();
  }

  /** The last frame has ended. */
  #sayClose(): void {
    const { visitor } = this.#options;
    const end = this.#end;
    const mayFollow = this.#frames !== undefined && !this.#frames.isClosed && visitor.writable;
    if (mayFollow && end !== "closed") {
      const frame = closeFrame(closeCodes[end]);
      visitor.write(frame);
      this.#closeBytes = frame.length;
    }
    this.#endVisitor();
  }

  #originClosed(): void {
    // What it sent before is still passed on.
    if (this.#state === "open" || this.#state === "parting") this.#endVisitor();
  }

  /** Nothing more is said to the visitor. */
  #endVisitor(): void {
    const { visitor, origin } = this.#options;
    if (this.#state === "closing" || this.#state === "closed") return;
    this.#state = "closing";
    clearTimeout(this.#timer);
    visitor.end();
    visitor.resume(); // Unread bytes at the close would make the kernel destroy what is on its way.
    origin.end();
    origin.resume();
    this.#timer = setTimeout(() => this.#cut(), this.#end === "closed" ? takeMs : partingMs);
  }

  #cut(): void {
    this.#options.visitor.destroy();
    this.#options.origin.destroy();
  }

  #closed(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#timer);
    this.#options.origin.destroy();
    this.#options.onEnd(this.#end);
  }
}
