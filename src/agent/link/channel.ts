// One channel to central, from the upgrade to its end: JSON messages over a WebSocket, each checked, and
// pings of our own that show whether the other side lives, whatever TCP says.
//
// Once it is open, `hello` goes out; `welcome` must come within its time. A message that we do not understand
// ends the channel with code 1008 and the reason.

import type { Agent as SecureAgent } from "node:https";
import type { IncomingMessage } from "node:http";
import { WebSocket, type RawData } from "ws";
import { AccelError, messageOf } from "../../core/faults.ts";
import {
  decodeCentralMessage,
  messageBytesMax,
  pingMissesMax,
  type AgentMessage,
  type CentralMessage,
  type Hello,
} from "../../wire/channel.ts";
import {
  agentTakes,
  readCentralTakes,
  takesHeader,
  type CentralTakes,
} from "../../wire/position.ts";
import { describeErrors } from "../../wire/validate.ts";
import { refusalBody, linkRefusal, unreachable } from "./refusal.ts";

export type ChannelOptions = {
  readonly url: URL;
  readonly ca: readonly string[] | undefined;
  /** What it goes through; if undefined, nothing. */
  readonly agent: SecureAgent | undefined;
  readonly token: string;
  readonly hello: Hello;
  readonly pingIntervalMs: number;
  readonly welcomeMs: number;
  /** Ends the channel; the peer is told the message of its reason. */
  readonly stop: AbortSignal;
};

/** Receives what comes on a channel. If a handler throws, the channel ends with that error. */
export type ChannelHandlers = {
  /** Called for whatever comes, an answer to a ping included. */
  readonly heard: () => void;
  /** Called when central says that it waits for its store: what it was told it has, and does not acknowledge yet. */
  readonly held: () => void;
  /**
   * `send` may be called until the channel ends; it returns false if the message was left out, because the
   * peer does not read as fast as we write or the channel has ended. `takes` is what central takes, as it
   * told when it accepted the channel.
   */
  readonly welcome: (
    message: Extract<CentralMessage, { type: "welcome" }>,
    send: (message: AgentMessage) => boolean,
    takes: CentralTakes,
  ) => void;
  readonly message: (
    message: Exclude<CentralMessage, { type: "welcome" | "pong" | "drain" }>,
  ) => void;
};

/**
 * How a channel ended. `refused`: something on the way does not support WebSocket. `drained`: central asked
 * us to leave. `revoked`: central takes the token of the channel no longer. `stopped`: we ended it.
 */
export type ChannelEnd =
  | { readonly kind: "refused"; readonly status: number }
  | { readonly kind: "drained"; readonly reconnectAfterMs: number }
  | { readonly kind: "revoked" }
  | { readonly kind: "stopped" }
  | { readonly kind: "ended"; readonly error: AccelError };

/** With this code central closes the channels of a site that was deleted, or whose secret was replaced without a grace. */
const revokedCode = 4001;
/** The most bytes that may wait for the socket: one large message and receipts. */
const bufferedBytesMax = 2 * messageBytesMax;
const refusalBytesMax = 65_536;
/** The time for the closing handshake, and for the body of a refusal. */
const graceMs = 250;
/** The most bytes of a close reason; with its code a close frame may have 125 (RFC 6455 §5.5). */
const reasonBytesMax = 120;

/** Opens a channel. Resolves when the socket is closed. Never rejects. */
export async function runChannel(
  options: ChannelOptions,
  handlers: ChannelHandlers,
): Promise<ChannelEnd> {
  const channel = new Channel(options, handlers);
  return channel.ended;
}

class Channel {
  readonly ended: Promise<ChannelEnd>;
  readonly #options: ChannelOptions;
  readonly #handlers: ChannelHandlers;
  readonly #socket: WebSocket;
  readonly #resolve: (end: ChannelEnd) => void;
  readonly #timers: NodeJS.Timeout[] = [];
  #end: ChannelEnd | undefined;
  #welcomed = false;
  #takes = readCentralTakes(undefined);
  #pings = 0;
  #pongs = 0;

  constructor(options: ChannelOptions, handlers: ChannelHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    ({ promise: this.ended, resolve: this.#resolve } = Promise.withResolvers<ChannelEnd>());
    const { url, ca, agent, token, welcomeMs, stop } = options;
    this.#socket = new WebSocket(url, {
      headers: { authorization: `Bearer ${token}`, [takesHeader]: agentTakes },
      handshakeTimeout: welcomeMs,
      maxPayload: messageBytesMax,
      perMessageDeflate: false,
      ...(ca === undefined ? {} : { ca: [...ca] }),
      ...(agent !== undefined && { agent }),
    });
    this.#listen(stop);
  }

  #listen(stop: AbortSignal): void {
    const stopped = (): void => this.#finish({ kind: "stopped" }, 1001, messageOf(stop.reason));
    this.#socket
      .on("upgrade", ({ headers }) => {
        this.#takes = readCentralTakes(headers[takesHeader]);
      })
      .on("open", () => this.#opened())
      .on("message", (data, isBinary) => this.#received(data, isBinary))
      .on("unexpected-response", (_request, response) => this.#refused(response))
      .on("error", (error) => {
        this.#end ??= { kind: "ended", error: unreachable("channel", error) };
      })
      .on("close", (code, reason) => {
        stop.removeEventListener("abort", stopped);
        for (const timer of this.#timers) clearTimeout(timer);
        if (code === revokedCode) this.#end ??= { kind: "revoked" };
        const why = reason.byteLength === 0 ? "" : `: ${reason.toString("utf8")}`;
        const error = new AccelError(
          "CENTRAL_UNREACHABLE",
          `the channel was closed (${code}${why})`,
        );
        this.#resolve(this.#end ?? { kind: "ended", error });
      });
    stop.addEventListener("abort", stopped, { once: true });
    if (stop.aborted) stopped();
  }

  #opened(): void {
    const { hello, pingIntervalMs, welcomeMs } = this.#options;
    this.#send(hello);
    this.#timers.push(
      setTimeout(() => {
        if (!this.#welcomed) this.#fail("CENTRAL_UNREACHABLE", "no welcome on the channel");
      }, welcomeMs),
      setInterval(() => this.#ping(), pingIntervalMs),
    );
  }

  #ping(): void {
    if (this.#pings - this.#pongs >= pingMissesMax)
      this.#fail("CENTRAL_UNREACHABLE", `no pong to ${pingMissesMax} pings on the channel`);
    else this.#send({ type: "ping", n: ++this.#pings });
  }

  #send(message: AgentMessage): boolean {
    if (this.#end !== undefined || this.#socket.bufferedAmount > bufferedBytesMax) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  #received(data: RawData, isBinary: boolean): void {
    if (this.#end !== undefined) return;
    this.#handlers.heard();
    const message = isBinary ? "binary message" : parse(data);
    if (typeof message === "string") {
      this.#fail("MESSAGE_INVALID", `the agent does not understand: ${message}`);
      return;
    }
    try {
      this.#handle(message);
    } catch (error) {
      const own =
        error instanceof AccelError ? error : new AccelError("INTERNAL", messageOf(error));
      this.#finish({ kind: "ended", error: own }, 1011, own.message);
    }
  }

  #handle(message: CentralMessage): void {
    switch (message.type) {
      case "welcome":
        this.#welcomed = true;
        return this.#handlers.welcome(message, (out) => this.#send(out), this.#takes);
      case "pong":
        this.#pongs = Math.max(this.#pongs, Math.min(message.n, this.#pings));
        if (message.held === true) this.#handlers.held();
        return;
      case "drain": {
        const reconnectAfterMs = message.reconnect_after_ms;
        return this.#finish({ kind: "drained", reconnectAfterMs }, 1000, "drained");
      }
      default:
        return this.#handlers.message(message);
    }
  }

  #fail(code: "CENTRAL_UNREACHABLE" | "MESSAGE_INVALID", text: string): void {
    const closeCode = code === "MESSAGE_INVALID" ? 1008 : 1001;
    this.#finish({ kind: "ended", error: new AccelError(code, text) }, closeCode, text);
  }

  #finish(end: ChannelEnd, code: number, reason: string): void {
    this.#end ??= end;
    if (this.#socket.readyState === WebSocket.CONNECTING) {
      this.#socket.terminate();
      return;
    }
    const short = Buffer.from(reason).subarray(0, reasonBytesMax).toString("utf8");
    this.#socket.close(code, short);
    this.#timers.push(setTimeout(() => this.#socket.terminate(), graceMs));
  }

  /**
   * Tells a refusal by central, which has central's error body, from any other answer, which is taken to come
   * from something on the way that does not support WebSocket.
   */
  #refused(response: IncomingMessage): void {
    const status = response.statusCode ?? 0;
    const chunks: Buffer[] = [];
    let size = 0;
    const told = (): void => {
      const text = Buffer.concat(chunks).toString("utf8");
      const own = refusalBody(text);
      const isCentral = status === 401 || own?.code === "too_many" || own?.code === "unavailable";
      this.#end ??= isCentral
        ? { kind: "ended", error: linkRefusal(status, text, "GET channel") }
        : { kind: "refused", status };
      this.#socket.terminate();
    };
    response
      .on("data", (chunk: Buffer) => {
        size += chunk.byteLength;
        if (size <= refusalBytesMax) chunks.push(chunk);
      })
      .on("end", told)
      .on("error", told);
    this.#timers.push(setTimeout(told, this.#options.welcomeMs));
  }
}

/** Returns the message, or what is wrong with it. */
function parse(data: RawData): CentralMessage | string {
  let raw: unknown;
  try {
    raw = JSON.parse(textOf(data));
  } catch (error) {
    return messageOf(error);
  }
  const decoded = decodeCentralMessage(raw);
  if (decoded.ok) return decoded.value;
  const type = typeof raw === "object" && raw !== null && "type" in raw ? String(raw.type) : "?";
  return `message of type ${type}: ${describeErrors(decoded.errors)}`;
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString("utf8");
  return Buffer.from(data instanceof ArrayBuffer ? new Uint8Array(data) : data).toString("utf8");
}
