// Kept connections of HTTP/1.1 to one origin without TLS. Whoever asks gets the connection that was used last, or a new one.

import type { Socket } from "node:net";
import { originConnector } from "./origin-connector.ts";
import { PlainConnection } from "./plain-connection.ts";
import type { OriginConnections, PoolOptions, WireEvents, WireRequest } from "./wire-request.ts";

/** How long a connection is kept idle where the origin does not say: most close it after five seconds or later. */
const keptMs = 4_000;
/** The most, whatever the origin says; and what is taken off its word, for the way there. */
const keptMsMax = 600_000;
const wayMs = 2_000;
const lookMs = 1_000;

/** What may be asked again where the origin closed a kept connection just then (RFC 9110 §9.2.2). */
const idempotent: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

export class PlainPool implements OriginConnections {
  readonly #options: PoolOptions;
  readonly #connect: ReturnType<typeof originConnector>;
  /** The one that was used last is at the end. */
  readonly #idle: PlainConnection[] = [];
  readonly #all = new Set<PlainConnection>();
  #look: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#connect = originConnector(options.origin, options.connectMs, options.guard);
  }

  ask(request: WireRequest, { onAnswer, onFailure, onOver }: WireEvents): void {
    const mayRepeat = typeof request.body !== "function" && idempotent.has(request.method);
    const fail = (error: Error): void => {
      onOver();
      onFailure(error);
    };
    const begin = (connection: PlainConnection): void => {
      if (request.stop.aborted) {
        this.#keep(connection, undefined);
        fail(request.stop.reason as Error);
        return;
      }
      const { isUsed } = connection;
      connection.ask(request, {
        onAnswer,
        onOver,
        onFailure: (error, isUnanswered) => {
          if (isUsed && isUnanswered && mayRepeat && !request.stop.aborted)
            this.#take(false, begin, fail);
          else fail(error);
        },
      });
    };
    this.#take(true, begin, fail);
  }

  /** The one place where a connection is taken. `mayBeUsed`: a kept one will do. */
  #take(
    mayBeUsed: boolean,
    onTaken: (connection: PlainConnection) => void,
    onFailure: (error: Error) => void,
  ): void {
    const kept = mayBeUsed ? this.#takeKept() : undefined;
    if (kept !== undefined) {
      onTaken(kept);
      return;
    }
    const { origin } = this.#options;
    const options = {
      hostname: origin.hostname.replace(/^\[(.*)\]$/, "$1"),
      host: origin.host,
      protocol: origin.protocol,
      port: origin.port,
    };
    this.#connect(options, (...[error, socket]) => {
      if (error !== null) onFailure(error);
      else if (this.#isClosed) {
        socket.destroy();
        onFailure(new Error("the pool is closed"));
      } else onTaken(this.#open(socket));
    });
  }

  #takeKept(): PlainConnection | undefined {
    const now = this.#options.steadyMs();
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (kept.isUsable && kept.keptUntilMs > now) return kept;
      kept.close();
    }
    return undefined;
  }

  #open(socket: Socket): PlainConnection {
    const connection = new PlainConnection(
      socket,
      (idle, keepAliveMs) => this.#keep(idle, keepAliveMs),
      (gone) => this.#forget(gone),
    );
    this.#all.add(connection);
    return connection;
  }

  #keep(connection: PlainConnection, keepAliveMs: number | undefined): void {
    const forMs = keepAliveMs === undefined ? keptMs : Math.min(keepAliveMs - wayMs, keptMsMax);
    if (forMs <= 0 || this.#isClosed) {
      connection.close();
      return;
    }
    connection.keptUntilMs = this.#options.steadyMs() + forMs;
    this.#idle.push(connection);
    this.#look ??= setInterval(() => this.#closeOld(), lookMs).unref();
  }

  #forget(connection: PlainConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #closeOld(): void {
    const now = this.#options.steadyMs();
    const old = this.#idle.filter(({ keptUntilMs }) => keptUntilMs <= now);
    for (const connection of old) connection.close();
    if (this.#all.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  async destroy(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#look);
    for (const connection of this.#all) connection.close();
  }
}
