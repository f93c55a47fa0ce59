// The visitors' listener of one worker: node:http with its strict parser, behind the gate for PROXY headers where they are required; connections and
// exchanges counted, errors of the parser answered and recorded, and a drain that drops nobody who has already connected.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as NetServer, type ListenOptions, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { listen } from "../../base/http-listener.ts";
import type { ClientAddresses } from "../../core/client-address.ts";
import { sendText } from "./answer.ts";
import { Connection, type Arrival } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import type { Clock } from "./ports.ts";
import type { ProblemLog } from "./problem-log.ts";
import { ProxyGate } from "./proxy-gate.ts";
import { requestLineOf, statusOfParserError, writeRawAnswer } from "./raw-answer.ts";
import type { Recorder } from "./recorder.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

export const proxyProtocols = ["off", "required"] as const;
export type ProxyProtocol = (typeof proxyProtocols)[number];

export type ListenerDeps = {
  readonly answer: (exchange: Exchange) => Promise<void>;
  readonly nextConnection: () => number;
  readonly clients: ClientAddresses;
  readonly proxyProtocol: ProxyProtocol;
  /** See ProxyGateDeps. */
  readonly headerMs?: number | undefined;
  readonly recorder: Recorder;
  readonly metrics: WorkerMetrics;
  readonly clock: Clock;
  readonly problems: ProblemLog;
};

/** Browsers send about 1 KiB, with large cookies up to 16. */
const headBytesMax = 32 * 1024;
/** Of one worker; about 20 KiB each, so 320 MiB at most. */
const connectionsMax = 16_384;
/** How long a connection without request is kept when draining: a request may be on its way. */
const idleGraceMs = 250;

const serverOptions = {
  insecureHTTPParser: false,
  maxHeaderSize: headBytesMax,
  requireHostHeader: false, // Checked by request-check.ts, so that the refusal is recorded.
  headersTimeout: 20_000,
  requestTimeout: 300_000, // 100 MiB at 350 KiB/s.
  keepAliveTimeout: 60_000,
  connectionsCheckingInterval: 1_000,
  noDelay: true,
};

export class VisitorListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #deps: ListenerDeps;
  readonly #connections = new Map<Duplex, Connection>();
  readonly #working = new Set<Promise<void>>();
  readonly #gate: ProxyGate | undefined;
  #draining = false;

  constructor(deps: ListenerDeps) {
    this.#deps = deps;
    this.#server = createServer(serverOptions);
    this.#server.maxHeadersCount = 0; // All that fit into headBytesMax: dropping some in silence would hide them from the checks.
    this.#server.maxConnections = connectionsMax;
    this.#gate = deps.proxyProtocol === "required" ? this.#openGate() : undefined;
    if (this.#gate === undefined)
      this.#server.on("connection", (socket: Socket) => this.#connected(directly(deps, socket)));
    this.#server.on("drop", () => deps.metrics.accel_agent_refused_connections_total.inc());
    this.#server.on("request", (request, response) => this.#begin(request, response, false));
    this.#server.on("checkContinue", (request, response) => this.#begin(request, response, true));
    this.#server.on("checkExpectation", (request, response) => {
      const exchange = this.#exchange(request, response, false);
      if (exchange !== undefined)
        sendText(exchange, 417, "The only expectation met is 100-continue.");
    });
    this.#server.on("clientError", (error, socket) => this.#refuse(error, socket));
    this.#server.on("connect", (request: IncomingMessage) => this.#answerConnect(request));
  }

  /** Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
  async listen(where: ListenOptions): Promise<number> {
    await listen(this.#server, where);
    const address = this.#server.address();
    return address !== null && typeof address === "object" ? address.port : 0;
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  /** Takes no new connections; answers what is under way and what is just arriving; cuts the rest after `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    // http.Server.close() would drop connections that were accepted and have sent nothing yet.
    NetServer.prototype.close.call(this.#server, () => resolve());
    for (const { live } of this.#connections.values())
      for (const { response } of live) response.shouldKeepAlive = false;
    const idle = setTimeout(() => this.#cutIdle(), Math.min(idleGraceMs, graceMs));
    const all = setTimeout(() => this.#cutAll(), graceMs);
    await closed;
    clearTimeout(idle);
    clearTimeout(all);
    await Promise.all(this.#working);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.drain(0);
    this.#server.close(); // Ends the interval that checks for slow connections.
  }

  /** Takes connections before node:http does, which hears of each when its header has been read. */
  #openGate(): ProxyGate {
    const serving = this.#server.listeners("connection");
    this.#server.removeAllListeners("connection");
    const admit = (arrival: Arrival): void => {
      for (const serve of serving) serve.call(this.#server, arrival.socket);
      this.#connected(arrival);
    };
    const gate = new ProxyGate({ ...this.#deps, admit });
    this.#server.on("connection", (socket: Socket) => gate.take(socket));
    return gate;
  }

  #cutIdle(): void {
    this.#gate?.cut();
    for (const { live, socket } of this.#connections.values()) if (live.size === 0) socket.end();
  }

  #cutAll(): void {
    this.#gate?.cut();
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #connected(arrival: Arrival): void {
    const { socket } = arrival;
    const connection = new Connection(this.#deps.nextConnection(), arrival);
    this.#connections.set(socket, connection);
    const { accel_agent_open_connections: open } = this.#deps.metrics;
    open.inc();
    socket.on("error", () => {}); // Node's own listener leaves with the parser, at CONNECT; its close tells enough.
    socket.once("close", () => {
      open.dec();
      this.#connections.delete(socket);
      for (const exchange of connection.live) exchange.end();
    });
  }

  #exchange(
    request: IncomingMessage,
    response: ServerResponse,
    awaitsContinue: boolean,
  ): Exchange | undefined {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return undefined; // Closed before its request was told: nobody to answer.
    const exchange = new Exchange(request, response, connection, {
      clock: this.#deps.clock,
      awaitsContinue,
      onEnd: (ended, status) => {
        connection.live.delete(ended);
        this.#deps.recorder.exchange(ended, status);
        if (this.#draining && connection.live.size === 0) connection.socket.end();
      },
    });
    connection.live.add(exchange);
    connection.newest = exchange;
    if (this.#draining) response.shouldKeepAlive = false;
    return exchange;
  }

  #begin(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const exchange = this.#exchange(request, response, awaitsContinue);
    if (exchange === undefined) return;
    const work = this.#run(exchange);
    this.#working.add(work);
    void work.finally(() => this.#working.delete(work));
  }

  async #run(exchange: Exchange): Promise<void> {
    const { problems } = this.#deps;
    let failure: unknown = new Error("the request got no answer");
    try {
      await this.#deps.answer(exchange);
    } catch (error) {
      failure = error;
      if (exchange.response.headersSent && !exchange.connection.socket.destroyed) {
        problems.tell("warn", exchange.domain, "answer cut", error);
        exchange.cut();
      }
    }
    if (exchange.response.headersSent || exchange.connection.socket.destroyed) return;
    if (exchange.stop.aborted) sendText(exchange, 400, "The request is malformed.");
    else {
      problems.tell("error", exchange.domain, "answer failed", failure);
      sendText(exchange, 500, "The accelerator failed to answer this request.");
    }
  }

  #refuse(error: Error, duplex: Duplex): void {
    const connection = this.#connections.get(duplex);
    const status = statusOfParserError(error);
    const newest = connection?.newest;
    if (connection === undefined || status === undefined || !duplex.writable) duplex.destroy();
    else if (newest !== undefined && !newest.request.complete) {
      // A body that broke: its exchange is told and still answers, unless it has answered already.
      newest.response.shouldKeepAlive = false;
      if (connection.live.has(newest)) newest.abandon(error);
      else duplex.destroy();
    } else if (newest !== undefined && connection.live.has(newest)) {
      // Answers go out in order: the refusal waits for those before it.
      newest.response.once("close", () => this.#refuseNow(connection, status, error));
    } else this.#refuseNow(connection, status, error);
  }

  #refuseNow(connection: Connection, status: number, error: Error): void {
    const { socket } = connection;
    // Browsers open connections ahead and may send nothing on them: no request, no answer, no record.
    if (!socket.writable || (status === 408 && connection.isUnused)) {
      socket.destroy();
      return;
    }
    writeRawAnswer(socket, status, this.#deps.clock.wallMs());
    this.#deps.recorder.refused(connection, status, requestLineOf(error));
  }

  #answerConnect(request: IncomingMessage): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return;
    writeRawAnswer(request.socket, 405, this.#deps.clock.wallMs());
    const line = { method: "CONNECT", target: request.url ?? "" };
    this.#deps.recorder.refused(connection, 405, line);
  }
}

function directly({ clients }: ListenerDeps, socket: Socket): Arrival {
  const peer = clients.ofPeer(socket.remoteAddress);
  return { socket, peer, port: socket.localPort, headerBytes: 0 };
}
