// One WebSocket as a stream of checked messages: incoming ones in order and bounded, outgoing ones bounded,
// pings answered at once.
//
// Invariants: messages are handled one batch after the other. While more wait than the limits allow, nothing
// is read from the socket. A message that is not understood closes the channel with 1008 and the reason. A
// peer that does not read what it is sent is cut off.

import type { RawData, WebSocket } from "ws";
import { Ending } from "../../base/ending.ts";
import { messageOf } from "../../core/faults.ts";
import { decodeAgentMessage, type AgentMessage, type CentralMessage } from "../../wire/channel.ts";
import { describeErrors } from "../../wire/validate.ts";

export type PeerMessage = Exclude<AgentMessage, { type: "ping" }>;

export type SocketEvents = {
  /**
   * Handles a batch; the next one waits until this one is handled. A rejection closes the channel with 1011.
   */
  readonly received: (messages: readonly PeerMessage[]) => Promise<void>;
  readonly failed: (error: unknown) => void;
  /** Whether pongs are to say that what the peer told waits for the store. */
  readonly isHeld: () => boolean;
  readonly closed: () => void;
};

const waitingMax = 256;
const waitingBytesMax = 2 ** 20;
/** Room for two pages of entries, and acknowledgements. */
const outgoingBytesMax = 24 * 2 ** 20;
const reasonBytesMax = 123; // RFC 6455 §5.5: 125 bytes with the code.

export class ChannelSocket {
  readonly #socket: WebSocket;
  readonly #events: SocketEvents;
  readonly #monotonicMs: () => number;
  readonly #gone = new Ending<false>();
  #waiting: PeerMessage[] = [];
  #waitingBytes = 0;
  #handling = false;
  #heardMs: number;
  #sendingSinceMs: number | undefined;

  constructor(socket: WebSocket, monotonicMs: () => number, events: SocketEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#monotonicMs = monotonicMs;
    this.#heardMs = monotonicMs();
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    socket.on("error", () => socket.terminate()); // Torn, too large or no UTF-8; "close" follows.
    socket.once("close", () => {
      this.#gone.end(false);
      events.closed();
    });
  }

  /** The time since the peer was last heard; 0 while its messages are being handled. */
  get silentMs(): number {
    return this.#handling ? 0 : this.#monotonicMs() - this.#heardMs;
  }

  /** The time for which the peer has not taken what it is being sent. */
  get stuckMs(): number {
    return this.#sendingSinceMs === undefined ? 0 : this.#monotonicMs() - this.#sendingSinceMs;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /**
   * Resolves with true when the system has taken the message, or with false when the channel has ended. Never
   * rejects.
   */
  async send(message: CentralMessage): Promise<boolean> {
    if (!this.isOpen) return false;
    if (this.#socket.bufferedAmount > outgoingBytesMax) {
      this.#socket.terminate();
      return false;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#sendingSinceMs ??= this.#monotonicMs();
    this.#socket.send(JSON.stringify(message), (error) => {
      this.#sendingSinceMs = this.#socket.bufferedAmount === 0 ? undefined : this.#monotonicMs();
      resolve(error === undefined || error === null);
    });
    return this.#gone.or(promise);
  }

  close(code: number, reason: string): void {
    let short = reason;
    while (Buffer.byteLength(short) > reasonBytesMax) short = short.slice(0, -1);
    this.#socket.close(code, short);
    this.#socket.resume(); // The peer's answer to the close must be read.
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /** Resolves when the connection is gone. */
  get gone(): Promise<unknown> {
    return this.#gone.promise;
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (!this.isOpen) return;
    this.#heardMs = this.#monotonicMs();
    if (isBinary) return this.close(1003, "messages are JSON texts");
    const text = Buffer.isBuffer(data) ? data.toString("utf8") : "";
    const parsed = parseMessage(text);
    if (typeof parsed === "string") return this.close(1008, parsed);
    if (parsed.type === "ping") {
      const isHeld = this.#events.isHeld();
      void this.send({ type: "pong", n: parsed.n, ...(isHeld && { held: true }) });
      return;
    }
    this.#waiting.push(parsed);
    this.#waitingBytes += text.length;
    if (this.#waiting.length >= waitingMax || this.#waitingBytes >= waitingBytesMax)
      this.#socket.pause();
    if (!this.#handling) void this.#handle();
  }

  async #handle(): Promise<void> {
    this.#handling = true;
    try {
      while (this.#waiting.length > 0 && this.isOpen) {
        const batch = this.#waiting;
        this.#waiting = [];
        this.#waitingBytes = 0;
        await this.#events.received(batch);
        if (this.#socket.isPaused) this.#socket.resume();
      }
    } catch (error) {
      this.#events.failed(error);
      this.close(1011, "central failed on a message; its log says why");
    } finally {
      this.#handling = false;
      this.#heardMs = this.#monotonicMs();
    }
  }
}

/** Returns the message, or the reason why the text is none. */
function parseMessage(text: string): AgentMessage | string {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    return `no JSON: ${messageOf(error)}`;
  }
  const decoded = decodeAgentMessage(raw);
  return decoded.ok ? decoded.value : `not understood: ${describeErrors(decoded.errors)}`;
}
