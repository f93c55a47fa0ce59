// The visitors' listeners of one worker, HTTP and HTTPS, each behind the gate for PROXY headers where they are required. HTTP/1 is node:http with its strict
// parser, whichever way it comes; HTTP/2 is http2-sessions.ts. Connections and exchanges are counted, errors of the parser answered and recorded, and a
// drain drops nobody who has already connected.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Server as NetServer, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { ListenPlace } from "../../../base/http-listener.ts";
import type { ClientAddresses } from "../../../core/http/client-address.ts";
import { fieldsOfRaw } from "../../../core/http/http-fields.ts";
import { isWrite } from "../../../core/http/http-write.ts";
import { Roster } from "../../../core/roster.ts";
import { asksForUpgrade } from "../../../core/serving/request-check.ts";
import { closeOf } from "../../../base/wait.ts";
import { VisitorLane } from "../lane/lane.ts";
import { LentSocket } from "../lane/lent-socket.ts";
import type { QuickAnswers } from "../lane/quick-answers.ts";
import type { RequestLine } from "../records/recorder.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { sendText } from "./answer.ts";
import { ExchangeRunner, type ExchangeRunnerDeps } from "./exchange-runner.ts";
import { type Exchange, Connection, type Arrival } from "./exchange.ts";
import type { Carrier } from "./carrier.ts";
import { hasBodyOf, Http1Carrier } from "./http1-carrier.ts";
import { keepAliveMs } from "./head-text.ts";
import { Http1UpgradeCarrier } from "./http1-upgrade-carrier.ts";
import { Http2Sessions, type Http2Limits } from "./http2-sessions.ts";
import { admitLate, closeListening, listenOn } from "./listening.ts";
import { ProxyGate, type ProxyProtocol } from "./proxy-gate.ts";
import { requestLineOf, statusOfParserError, writeRawAnswer } from "./raw-answer.ts";
import type { LateVisitors } from "../pool/visitor-sockets.ts";
import type { LateWrites } from "../origin/late-writes.ts";
import type { SecureContexts } from "./secure-contexts.ts";
import { RequestWatch } from "./request-watch.ts";
import { SecureDoor } from "./secure-door.ts";
import type { Staples } from "./staples.ts";
import type { TicketKeys } from "./ticket-keys.ts";
import type { VisitorShares } from "./visitor-shares.ts";

export type ListenerDeps = ExchangeRunnerDeps & {
  readonly nextConnection: () => number;
  /** Counts a connection among those of all workers. False: there is no place for it. Unsaid: there always is. */
  readonly places?: { enter(): boolean; leave(): void } | undefined;
  readonly clients: ClientAddresses;
  readonly proxyProtocol: ProxyProtocol;
  readonly visitors: Pick<VisitorShares, "admit">;
  /** See ProxyGateDeps. */
  readonly headerMs?: number | undefined;
  readonly metrics: WorkerMetrics;
  /** The contexts for HTTPS. */
  readonly contexts: Pick<SecureContexts, "find">;
  readonly ticketKeys: () => TicketKeys;
  readonly staples: Pick<Staples, "find">;
  /** See SecureDoorDeps. */
  readonly handshakeMs?: number | undefined;
  readonly http2?: Partial<Http2Limits> | undefined;
  readonly quick: Pick<QuickAnswers, "answer">;
  /** Ended where what is under way is cut. */
  readonly writes: Pick<LateWrites, "end">;
  /** Whether plain requests are answered in one step where they can be. */
  readonly usesLane: () => boolean;
  /** See LaneOptions; for tests. */
  readonly laneLookMs?: number | undefined;
};

/** How a drain goes: see `drain`. */
export type Drain = {
  readonly graceMs: number;
  readonly writesMs?: number;
  readonly onQuiet?: () => void;
};

/** Browsers send about 1 KiB, with large cookies up to 16. */
const headBytesMax = 32 * 1024;
/**
 * The most connections of one worker and listener. At about 20 KiB each they take 320 MiB; encrypted ones
 * three times that.
 */
const connectionsMax = 16_384;
/**
 * So many pipelined requests of a connection are under way at once in node:http, which tells all that one read
 * brought: the answer of the last of them ends the connection (RFC 9112 §9.3.2). What follows is not told.
 */
const pipelinedMax = 32;
/** How long a connection without request is kept when draining: a request may be on its way. */
const idleGraceMs = 250;
/** The same for one that no byte has come of: it was opened to ask something, and not every client asks again. */
const unusedGraceMs = 1_000;

/** When an agent hands over, its successor takes orders after this time: nobody may begin anything at the old one then, by what it knew. */
const quietMs = 2_000;

/** The time that connections which are in use have to end with an answer. */
const finishLeastMs = 1_000;
/** How often to look whether what was waited for has ended. */
const finishLookMs = 50;

const nothing = Buffer.alloc(0);
const ignore = (): void => {};

const serverOptions = {
  insecureHTTPParser: false,
  maxHeaderSize: headBytesMax,
  requireHostHeader: false, // Checked by core (request-check.ts), so that the refusal is recorded.
  headersTimeout: 20_000,
  requestTimeout: 300_000, // 100 MiB at 350 KiB/s.
  keepAliveTimeout: keepAliveMs,
  connectionsCheckingInterval: 1_000,
  noDelay: true,
};

export class VisitorListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #deps: ListenerDeps;
  readonly #runner: ExchangeRunner;
  readonly #door: SecureDoor;
  readonly #sessions: Http2Sessions;
  readonly #connections = new Roster<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();
  readonly #gates: ProxyGate[] = [];
  /** Serves a new connection as node:http does. */
  readonly #serve: (socket: Duplex) => void;
  readonly #lane: VisitorLane;
  /** Requests for another protocol that are answered in this one: node's parser loses what came behind them. */
  readonly #declined = new WeakSet<IncomingMessage>();
  #draining = false;
  #hasFinished = false;
  /** Whether no request may begin any more. */
  #isQuiet = false;

  constructor(deps: ListenerDeps) {
    this.#deps = deps;
    this.#runner = new ExchangeRunner(deps);
    const { http2: limits, usesLane: usesQuick } = deps;
    this.#sessions = new Http2Sessions({ ...deps, runner: this.#runner, limits, usesQuick });
    const shouldUpgradeCallback = (request: IncomingMessage): boolean => this.#mayUpgrade(request);
    this.#server = createServer({ ...serverOptions, shouldUpgradeCallback });
    this.#server.maxHeadersCount = 0; // All that fit into headBytesMax: dropping some in silence would hide them from the checks.
    this.#server.maxConnections = connectionsMax;
    const serving = this.#server.listeners("connection");
    this.#serve = (socket) => {
      for (const serve of serving) (serve as (socket: Duplex) => void).call(this.#server, socket);
    };
    this.#server.removeAllListeners("connection");
    this.#lane = new VisitorLane({
      ...deps,
      runner: this.#runner,
      headMs: serverOptions.headersTimeout,
      lookMs: deps.laneLookMs,
      isDraining: () => this.#draining,
      lend: (lent) => this.#serveWatched(lent, lent.connection),
      refuse: (connection, status, line) => this.#refuseLine(connection, status, line),
    });
    this.#door = new SecureDoor({
      ...deps,
      connectionsMax,
      mayUseHttp2: ({ peer }) => !this.#sessions.offenders.has(peer),
      admit: (arrival, protocol) => {
        if (protocol === "h2") this.#sessions.take(arrival);
        else this.#connected(arrival);
      },
    });
    this.#letIn(this.#server, (arrival) => this.#connected(arrival));
    this.#letIn(this.#door.server, (arrival) => this.#door.take(arrival), true);
    this.#server.on("request", (request, response) => this.#begin(request, response, false));
    this.#server.on("checkContinue", (request, response) => this.#begin(request, response, true));
    this.#server.on("checkExpectation", (request, response) => {
      const exchange = this.#exchange(request, response, false);
      if (exchange !== undefined)
        sendText(exchange, 417, "The only expectation met is 100-continue.");
    });
    this.#server.on("upgrade", (request: IncomingMessage, _socket, early: Buffer) =>
      this.#beginUpgrade(request, early),
    );
    this.#server.on("clientError", (error, socket) => this.#refuse(error, socket));
    this.#server.on("connect", (request: IncomingMessage) => this.#answerConnect(request));
  }

  /** Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
  async listen(where: ListenPlace): Promise<number> {
    return listenOn(this.#server, where);
  }

  /** HTTPS. Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
  async listenSecure(where: ListenPlace): Promise<number> {
    return listenOn(this.#door.server, where);
  }

  /** Serves connections that were accepted elsewhere, and that nobody has read of: as if they had been accepted here. The descriptors are this listener's. */
  takeLate({ plain, secure }: LateVisitors): void {
    for (const fd of plain) admitLate(this.#server, fd, true);
    for (const fd of secure) admitLate(this.#door.server, fd, false);
  }

  get openConnections(): number {
    return this.#connections.size + this.#sessions.openConnections;
  }

  ticketKeysChanged(): void {
    this.#door.ticketKeysChanged();
  }

  /**
   * Resolves when what is under way now has ended; what has not after `graceMs` is cut. Others come and are answered all the same, by HTTP/1 each on a connection that ends
   * with its answer: so hardly anybody has one open, and a request on its way in it, when a drain behind this cuts those that are idle. Those on which nothing is asked in the
   * first second end here, so that the drain, while nobody is accepted, has not to wait for them. Connections of HTTP/2 stay: of what a client had not sent yet when it was
   * told to go, it would ask much once more. It also ends what has been joined meanwhile, such as a WebSocket, without grace: nothing is asked there that would be answered.
   */
  async finish(graceMs: number): Promise<void> {
    this.#draining = true;
    const left = new Set(this.#live());
    const idle = [...this.#connections].filter(({ isIdle }) => isIdle);
    this.#endConnections();
    const began = performance.now();
    if (this.openConnections > 0) await sleep(Math.min(finishLeastMs, graceMs));
    await nextTurn(); // What has come is read first.
    for (const one of idle) if (one.isIdle) one.part();
    for (; left.size > 0; await sleep(finishLookMs)) {
      const live = new Set(this.#live());
      for (const one of left) if (!live.has(one)) left.delete(one);
      if (performance.now() - began < graceMs) continue;
      for (const one of left) end(one);
      break;
    }
    this.#hasFinished = true;
  }

  /** Has each request that is under way by HTTP/1 be the last one of its connection. Connections of HTTP/2 are told to go by their drain, with a notice. */
  #endConnections(): void {
    for (const { live } of this.#connections) for (const one of live) one.endConnection();
  }

  *#live(): Generator<Exchange> {
    for (const { live } of this.#connections) yield* live;
    yield* this.#sessions.live();
  }

  /** Has each answer be the last one of its connection from now on, where HTTP/1 carries it, or not any more. So few have one open when a drain follows. */
  slacken(isSlack: boolean): void {
    this.#draining = isSlack;
    if (isSlack) this.#endConnections();
  }

  /**
   * Takes no new connections; answers what is under way and what is just arriving; cuts the rest after `graceMs`, and writes `writesMs` later: what a write that is cut changes at the
   * origin later, nobody knows. `onQuiet` is called when no request begins any more, which without it may be at the end.
   */
  async drain({ graceMs, writesMs = 0, onQuiet }: Drain): Promise<void> {
    this.#draining = true;
    // http.Server.close() would drop connections that were accepted and have sent nothing yet.
    const closed = [this.#server, this.#door.server].map(closeListening);
    this.#sessions.drain(Math.min(unusedGraceMs, graceMs / 2), this.#hasFinished);
    if (this.#hasFinished) for (const one of this.#live()) one.taker?.part();
    this.#endConnections();
    const idle = behindRead(() => this.#cutIdle(false), Math.min(idleGraceMs, graceMs));
    const unused = behindRead(() => this.#cutIdle(true), Math.min(unusedGraceMs, graceMs));
    const most = writesMs > 0 ? setTimeout(() => this.#cutAll(isWrite), graceMs) : undefined;
    const all = setTimeout(() => {
      this.#deps.writes.end();
      this.#cutAll(() => false);
    }, graceMs + writesMs);
    const quiet = setTimeout(() => this.#beQuiet(onQuiet), Math.min(quietMs, graceMs));
    await Promise.all(closed);
    await this.#sessions.ended();
    // An encrypted connection is told to be closed after the one that carries it.
    for (let { first } = this.#connections; first !== undefined; { first } = this.#connections)
      await closeOf(first.socket);
    for (const timer of [idle, unused]) clearTimeout(timer);
    await this.#runner.settled();
    for (const timer of [most, all, quiet]) clearTimeout(timer);
    this.#beQuiet(onQuiet);
  }

  #beQuiet(onQuiet: (() => void) | undefined): void {
    if (this.#isQuiet || onQuiet === undefined) return;
    this.#isQuiet = true;
    this.#door.cut();
    this.#cutIdle(true);
    this.#sessions.close();
    onQuiet();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening || this.#door.server.listening) await this.drain({ graceMs: 0 });
    this.#server.close(); // Ends the interval that checks for slow connections.
    this.#lane[Symbol.dispose]();
  }

  #letIn(server: NetServer, admit: (arrival: Arrival) => void, leavesPaused = false): void {
    const { clients, proxyProtocol, metrics, visitors } = this.#deps;
    const enter = (arrival: Arrival): void => {
      if (visitors.admit(arrival)) admit(arrival);
    };
    server.on("drop", () => metrics.accel_agent_refused_connections_total.inc());
    if (proxyProtocol === "off") {
      let port: number | undefined; // The same for all, and asked of the system once.
      server.on("connection", (socket: Socket) => {
        if (!this.#hasPlace(socket)) return;
        const peer = clients.ofPeer(socket.remoteAddress);
        port ??= socket.localPort;
        enter({ socket, peer, port, headerBytes: 0 });
      });
      return;
    }
    const gate = new ProxyGate({ ...this.#deps, admit: enter, leavesPaused });
    this.#gates.push(gate);
    server.on("connection", (socket: Socket) => {
      if (this.#hasPlace(socket)) gate.take(socket);
    });
  }

  /** Whether the descriptors of the process suffice for it. It is closed otherwise. */
  #hasPlace(socket: Socket): boolean {
    const { places, metrics } = this.#deps;
    if (places === undefined) return true;
    if (places.enter()) {
      socket.once("close", () => places.leave());
      return true;
    }
    metrics.accel_agent_refused_connections_total.inc();
    socket.destroy();
    return false;
  }

  #cutIdle(evenUnused: boolean): void {
    if (evenUnused) for (const gate of this.#gates) gate.cut();
    for (const one of this.#connections)
      if (one.isIdle && (evenUnused || !one.isUnused)) one.part();
  }

  /** Cuts every connection on which nothing is under way that is spared. */
  #cutAll(spares: (exchange: Exchange) => boolean): void {
    this.#door.cut();
    this.#sessions.cut(spares);
    for (const { socket, live } of this.#connections) {
      const taker = [...live].find((one) => one.taker !== undefined)?.taker;
      if (taker !== undefined) taker.part();
      else if (![...live].some(spares)) socket.destroy();
    }
  }

  #connected(arrival: Arrival): void {
    const { socket } = arrival;
    if (this.#isQuiet) {
      socket.destroy();
      return;
    }
    const connection = new Connection(this.#deps.nextConnection(), arrival);
    this.#connections.add(connection);
    this.#bySocket.set(socket, connection);
    const { accel_agent_open_connections: open } = this.#deps.metrics;
    open.inc();
    socket.on("error", ignore); // Its close tells enough.
    socket.on("close", () => {
      open.dec();
      this.#connections.delete(connection);
      this.#bySocket.delete(socket);
      this.#lane.closed(connection);
      for (const exchange of connection.live) exchange.end();
    });
    if (this.#deps.usesLane()) this.#lane.take(connection);
    else this.#serveWatched(socket, connection);
    if (this.#draining) this.#endUnused(connection);
  }

  /** Everything that the parser of node:http reads is watched, for it does not tell all. */
  #serveWatched(socket: Duplex, connection: Connection): void {
    const watch = new RequestWatch();
    connection.watch = watch;
    this.#serve(socket);
    watch.follow(socket);
  }

  /** Its handshake was under way when the drain began: its request may be on its way. */
  #endUnused(connection: Connection): void {
    const late = behindRead(() => {
      if (connection.isIdle) connection.part();
    }, unusedGraceMs);
    connection.socket.once("close", () => clearTimeout(late));
  }

  /** Undefined: it has closed. */
  #connectionOf(duplex: Duplex): Connection | undefined {
    return this.#bySocket.get(duplex instanceof LentSocket ? duplex.connection.socket : duplex);
  }

  #exchange(
    request: IncomingMessage,
    response: ServerResponse,
    awaitsContinue: boolean,
  ): Exchange | undefined {
    const connection = this.#connectionOf(request.socket);
    const watched = connection?.watch?.next();
    // Closed before its request was told, or by the answer before it (RFC 9112 §9.6): nobody to answer.
    const hasEnded = connection?.hasParted === true || connection?.newest?.isLast === true;
    if (connection === undefined || hasEnded) return undefined;
    const carrier = new Http1Carrier(request, response, connection, watched);
    const isCrowded = connection.live.size >= pipelinedMax - 1;
    if (this.#draining || isCrowded || this.#declined.has(request)) carrier.endConnection();
    const exchange = this.#open(carrier, connection, awaitsContinue);
    if (watched?.isHttp === true) return exchange;
    // What the parser and the watch read differently is refused like what neither should take.
    exchange.endConnection();
    sendText(exchange, 400, "The request is not one of HTTP.");
    return undefined;
  }

  #open(carrier: Carrier, connection: Connection, awaitsContinue: boolean): Exchange {
    return this.#runner.open(carrier, connection, awaitsContinue, () => {
      if (this.#draining && connection.isIdle) connection.part();
      else this.#lane.lentAnswered(connection);
    });
  }

  /** Behind an answer that is not out yet the connection cannot be given away: the pipeline says so. */
  #mayUpgrade(request: IncomingMessage): boolean {
    const { method = "", url = "", httpVersion, headers, rawHeaders } = request;
    const hasBody = hasBodyOf(headers);
    const head = { method, url, httpVersion, hasBody, fields: fieldsOfRaw(rawHeaders) };
    const connection = this.#connectionOf(request.socket);
    const isFree = connection?.live.size === 0 && connection.newest?.isLast !== true;
    const mayUpgrade = isFree && asksForUpgrade(head);
    if (!mayUpgrade && !hasBody) this.#declined.add(request);
    return mayUpgrade;
  }

  #beginUpgrade(request: IncomingMessage, early: Uint8Array): void {
    const connection = this.#connectionOf(request.socket);
    if (connection === undefined || connection.hasParted) return; // Closed before its request was told: nobody to answer.
    connection.watch?.leave();
    const unread = this.#lane.leave(connection) ?? nothing;
    const said = Buffer.concat([early, unread]);
    const carrier = new Http1UpgradeCarrier(request, said, connection);
    this.#runner.begin(this.#open(carrier, connection, false));
  }

  #begin(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const exchange = this.#exchange(request, response, awaitsContinue);
    if (exchange !== undefined) this.#runner.begin(exchange);
  }

  #refuse(error: Error, duplex: Duplex): void {
    const connection = this.#connectionOf(duplex);
    const status = statusOfParserError(error);
    const line = requestLineOf(error, duplex instanceof LentSocket ? duplex.before : nothing);
    const newest = connection?.newest;
    if (connection === undefined || status === undefined || !duplex.writable) duplex.destroy();
    else if (newest !== undefined && !newest.isReceived) {
      // A body that broke: its exchange is told and still answers, unless it has answered already.
      newest.endConnection();
      if (connection.live.has(newest)) newest.abandon(error);
      else duplex.destroy();
    } else if (newest !== undefined && connection.live.has(newest)) {
      // Answers go out in order: the refusal waits for those before it.
      newest.onClose(() => this.#refuseNow(connection, status, line));
    } else this.#refuseNow(connection, status, line);
  }

  #refuseNow(connection: Connection, status: number, line: RequestLine): void {
    const { socket } = connection;
    // Browsers open connections ahead and may send nothing on them: no request, no answer, no record.
    if (!socket.writable || (status === 408 && connection.isUnused)) {
      socket.destroy();
      return;
    }
    this.#refuseLine(connection, status, line);
  }

  #refuseLine(connection: Connection, status: number, line: RequestLine): void {
    this.#lane.leave(connection);
    writeRawAnswer(connection.socket, status, this.#deps.clock.wallMs());
    this.#deps.recorder.refused(connection, status, line);
  }

  #answerConnect(request: IncomingMessage): void {
    const connection = this.#connectionOf(request.socket);
    const newest = connection?.newest;
    if (connection === undefined || newest?.isLast === true) return;
    connection.watch?.leave();
    const line = { method: "CONNECT", target: request.url ?? "" };
    const refuse = (): void => {
      if (connection.socket.writable) this.#refuseLine(connection, 405, line);
    };
    // Answers go out in order.
    if (newest !== undefined && connection.live.has(newest)) newest.onClose(refuse);
    else refuse();
  }
}

function end(exchange: Exchange): void {
  if (exchange.taker === undefined) exchange.cut();
  else exchange.taker.part();
}

/** As setTimeout does, but behind the next look at the sockets: where the loop is late, what has come is read first. */
function behindRead(action: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(() => setImmediate(action), ms);
}
