// Visitors' connections of HTTP/2: each stream is answered in the step in which it is told, or is an exchange of its own; and what a connection may ask for is
// bounded.
//
//   at a time     128 streams; a header of 64 KiB and 400 fields (32 KiB and 200 are answered 431); 10 MB of memory
//   in one step   16 streams begin, the others wait for their turn (stream-turns.ts)
//   in time       streams that the visitor resets (300, then 50 a second); pings and settings (100, then 10 a second); 60 s without a stream;
//                 what comes beside requests and their bodies (http2-overhead.ts)
//
// Who goes beyond that is cut with ENHANCE_YOUR_CALM, and has no HTTP/2 for a minute (http2-offenders.ts). A drain says GOAWAY without naming a last stream, to a new connection behind its first request,
// takes what was on its way, says GOAWAY for good, and waits for what is under way (RFC 9113 §6.8).

import { randomBytes } from "node:crypto";
import { constants, performServerHandshake, type ServerHttp2Session } from "node:http2";
import type { ServerHttp2Stream } from "node:http2";
import { Budget, type BudgetRules } from "../../../core/budget.ts";
import { fieldValue } from "../../../core/http/http-fields.ts";
import { webSocketHead } from "../../../core/http/http2-request.ts";
import { Roster } from "../../../core/roster.ts";
import { closeOf } from "../../../base/wait.ts";
import type { WorkerClock } from "../clock.ts";
import type { QuickAnswer } from "../lane/quick-answer.ts";
import type { QuickAnswers, QuickPass } from "../lane/quick-answers.ts";
import { StreamHeads } from "../lane/stream-heads.ts";
import { LaneTurns } from "../lane/turns.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { Recorder } from "../records/recorder.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { sendText } from "./answer.ts";
import type { ExchangeRunner } from "./exchange-runner.ts";
import { Connection, type Arrival, type Exchange } from "./exchange.ts";
import { Http2Carrier, takeMs } from "./http2-carrier.ts";
import { Http2ConnectCarrier } from "./http2-connect-carrier.ts";
import { Http2Offenders } from "./http2-offenders.ts";
import { Http2Overhead, overheadDefault } from "./http2-overhead.ts";
import { QuickStream } from "./http2-quick.ts";
import { SessionReads, StreamTurns } from "./stream-turns.ts";

export type Http2SessionsDeps = {
  readonly runner: ExchangeRunner;
  readonly nextConnection: () => number;
  readonly metrics: WorkerMetrics;
  readonly clock: WorkerClock;
  readonly problems: ProblemLog;
  readonly quick: Pick<QuickAnswers, "answer">;
  readonly recorder: Pick<Recorder, "quick">;
  /** Whether plain requests are answered in one step where they can be. */
  readonly usesQuick: () => boolean;
  readonly limits?: Partial<Http2Limits> | undefined;
};

export type Http2Limits = {
  readonly idleMs: number;
  /** The time between the two GOAWAYs: one way to a far visitor and back. */
  readonly noticeMs: number;
  /** The same where visitors wait meanwhile: what comes later is refused unread, and clients ask it once more (RFC 9113 §8.7). */
  readonly shortNoticeMs: number;
  /** The time between two looks whether visitors take their answers, and for how long they may take nothing. */
  readonly lookMs: number;
  readonly takeMs: number;
  readonly resets: BudgetRules;
  /** Pings and settings. */
  readonly control: BudgetRules;
  /** Bytes beside requests and their bodies, and the time between two looks at them. */
  readonly overhead: BudgetRules;
  readonly overheadLookMs: number;
  /** For how long a visitor whose connection was cut has no HTTP/2. */
  readonly offenderMs: number;
};

const limitsDefault: Http2Limits = {
  idleMs: 60_000,
  noticeMs: 250,
  shortNoticeMs: 100,
  lookMs: 1_000,
  takeMs,
  resets: { burst: 300, perSecond: 50 },
  control: { burst: 100, perSecond: 10 },
  overhead: overheadDefault,
  overheadLookMs: 50,
  offenderMs: 60_000,
};

/** So many connections are looked at in a millisecond, so that looking takes less than a hundredth of the time. */
const looksPerMs = 50;

/** The time for the last GOAWAY to arrive. */
const goodbyeMs = 2_000;
/** The time for WebSockets to be told to go; each takes 2 s at most. */
const partingMs = 3_000;
/**
 * The window of all streams of a connection together; each stream has 64 KiB. It keeps the way back from
 * holding up an upload.
 */
const windowBytes = 2 ** 20;
/** Why a connection was cut, for the log. */
const cutReasons = {
  resets: "an HTTP/2 connection was closed: its visitor reset too many streams",
  control: "an HTTP/2 connection was closed: its visitor sent too many PING or SETTINGS frames",
  overhead:
    "an HTTP/2 connection was closed: its visitor sent too many frames without a request or a body, such as WINDOW_UPDATE",
  protocol: "an HTTP/2 connection was closed: its visitor broke the protocol",
};

/** What Node's library gives a connection up with, when the visitor does not keep to the protocol or to the limits that the library itself has. */
const libraryCodes: ReadonlySet<unknown> = new Set([
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
]);

/** No stream may be told as the last one. */
const noLastStream = 2 ** 31 - 1;

const options = {
  settings: {
    maxConcurrentStreams: 128,
    maxHeaderListSize: 65_536,
    enablePush: false,
    enableConnectProtocol: true, // For WebSockets (RFC 8441).
  },
  maxHeaderListPairs: 400,
  maxSettings: 16,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // The library itself cuts off who resets more of what one read brought: no stream of it is told.
  streamResetBurst: 300,
  streamResetRate: 50,
  // Origins repeat fields that have one value; HTTP/1.1 passes them on as well.
  strictSingleValueFields: false,
};

type Held = {
  readonly session: ServerHttp2Session;
  readonly connection: Connection;
  readonly resets: Budget;
  readonly control: Budget;
  readonly overhead: Http2Overhead;
  readonly heads: StreamHeads;
  /** Those of its streams that have not begun. */
  readonly turns: StreamTurns<ServerHttp2Stream>;
  /** Answered in one step, and not yet taken. */
  readonly leaving: Roster<QuickStream>;
  readonly onLeft: (ended: QuickStream, answer: QuickAnswer) => void;
  /** When it was last left without a stream. */
  restsSinceMs: number;
  /** Looks whether it has rested for long, or ends it. */
  timer: NodeJS.Timeout | undefined;
  /** It is told to go, or will be behind its first stream. */
  isParting: boolean;
};

export class Http2Sessions {
  readonly offenders: Http2Offenders;
  readonly #deps: Http2SessionsDeps;
  readonly #limits: Http2Limits;
  readonly #held = new Roster<Held>();
  readonly #turns = new LaneTurns();
  #draining = false;
  /** For how long, in a drain, a connection is waited for on which nothing has been asked. */
  #unusedMs = 0;
  #noticeMs = 0;
  /** Whether a look at who takes his answer is due. */
  #isToLook = false;
  /** While there is a connection. */
  #overheadLooks: NodeJS.Timeout | undefined;

  constructor(deps: Http2SessionsDeps) {
    this.#deps = deps;
    this.#limits = { ...limitsDefault, ...deps.limits };
    this.offenders = new Http2Offenders(deps.clock, this.#limits.offenderMs);
  }

  get openConnections(): number {
    return this.#held.size;
  }

  /** The exchanges that are under way. */
  *live(): Generator<Exchange> {
    for (const { connection } of this.#held) yield* connection.live;
  }

  /** Takes a connection that has agreed on h2. */
  take(arrival: Arrival): void {
    if (arrival.socket.destroyed) return;
    const { nextConnection, metrics, clock } = this.#deps;
    const session = performServerHandshake(arrival.socket, options);
    session.setLocalWindowSize(windowBytes);
    const nowMs = clock.steadyMs();
    const held: Held = {
      session,
      connection: new Connection(nextConnection(), arrival),
      resets: new Budget(this.#limits.resets, nowMs),
      control: new Budget(this.#limits.control, nowMs),
      overhead: new Http2Overhead(arrival.socket, this.#limits.overhead, nowMs),
      heads: new StreamHeads(),
      turns: new StreamTurns({
        turns: this.#turns,
        reads: new SessionReads(arrival.socket),
        begin: (stream, raw) => this.#begin(held, stream, raw),
        onReset: () => this.#count(held, "resets"),
        onNone: () => this.#restIfDone(held),
      }),
      leaving: new Roster(),
      onLeft: (ended, answer) => this.#left(held, ended, answer),
      restsSinceMs: nowMs,
      timer: undefined,
      isParting: false,
    };
    this.#held.add(held);
    if (this.#overheadLooks === undefined) this.#overheadLooks = this.#lookOverheadLater();
    metrics.accel_agent_open_connections.inc();
    session.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (libraryCodes.has(code)) this.#tellCut(held, "protocol");
    });
    session.on("stream", (stream, headers, _flags, raw) => {
      const fields = raw ?? Object.entries(headers).flat().map(String);
      held.overhead.take(stream, fields);
      held.turns.take(stream, fields);
    });
    session.on("ping", () => this.#count(held, "control"));
    session.on("remoteSettings", () => this.#count(held, "control"));
    // Not the session's own close: it waits for what the socket will never take.
    arrival.socket.once("close", () => this.#closed(held));
    this.#rest(held);
    if (this.#draining) this.#drain(held);
  }

  /** Takes no new streams soon; what is under way is answered. A connection on which nothing has been asked has so long to ask something. `isAwaited`: visitors wait for the end. */
  drain(unusedMs: number, isAwaited = false): void {
    this.#draining = true;
    this.#unusedMs = unusedMs;
    this.#noticeMs = isAwaited ? this.#limits.shortNoticeMs : this.#limits.noticeMs;
    for (const held of this.#held) this.#drain(held);
  }

  /** Takes no new streams at all, behind the begin of a drain. */
  close(): void {
    for (const { session } of this.#held) if (!session.destroyed) session.close();
  }

  /** Resolves when no connection is left. */
  async ended(): Promise<void> {
    for (let { first } = this.#held; first !== undefined; { first } = this.#held)
      await closeOf(first.connection.socket);
  }

  cut(spares: (exchange: Exchange) => boolean): void {
    for (const held of this.#held) {
      const { session, connection, turns } = held;
      const live = [...connection.live];
      if (live.some(spares)) continue;
      const waiting = turns.clear();
      if (live.every(({ taker }) => taker === undefined)) {
        session.destroy(new Error("the connection was cut"), constants.NGHTTP2_CANCEL);
        connection.socket.destroy();
        continue;
      }
      for (const exchange of live)
        if (exchange.taker === undefined) exchange.cut();
        else exchange.taker.part();
      for (const quick of held.leaving) quick.cut();
      for (const stream of waiting) stream.close(constants.NGHTTP2_REFUSED_STREAM);
      if (!session.destroyed) session.close();
      this.#forget(held, partingMs);
    }
  }

  /** Whoever has asked nothing yet connected to ask something, and not every client asks again elsewhere: he is told behind his first request. */
  #drain(held: Held): void {
    const { session } = held;
    if (session.destroyed || held.isParting) return;
    held.isParting = true;
    if (session.state.lastProcStreamID !== 0) {
      this.#tell(session);
      return;
    }
    const tell = (): void => {
      clearTimeout(late);
      session.off("stream", tell);
      this.#tell(session);
    };
    const late = setTimeout(tell, this.#unusedMs);
    session.once("stream", tell);
    session.once("close", () => clearTimeout(late));
  }

  /** One that has been told for good is not told again: no later GOAWAY may name more streams (RFC 9113 §6.8). */
  #tell(session: ServerHttp2Session): void {
    if (session.destroyed || session.closed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, noLastStream);
    const last = setTimeout(() => {
      if (!session.destroyed) session.close();
    }, this.#noticeMs);
    session.once("close", () => clearTimeout(last));
  }

  #begin(held: Held, stream: ServerHttp2Stream, raw: readonly string[]): void {
    if (stream.closed || stream.destroyed) {
      stream.on("error", () => {});
      this.#count(held, "resets"); // Before it was told: nobody to answer.
      return;
    }
    const passed = this.#answerNow(held, stream, raw);
    if (passed !== "answered") this.#open(held, stream, raw, passed);
  }

  /** Answers a plain request in this step; otherwise returns what was found of it, undefined for one that is not plain. */
  #answerNow(
    held: Held,
    stream: ServerHttp2Stream,
    raw: readonly string[],
  ): "answered" | QuickPass | undefined {
    const { quick, usesQuick } = this.#deps;
    const head = stream.endAfterHeaders && usesQuick() ? held.heads.read(raw) : undefined;
    if (head === undefined) return undefined;
    const found = quick.answer(head, held.connection);
    if (found.kind === "pass") return found;
    try {
      held.leaving.add(new QuickStream(stream, found, held.onLeft));
    } catch {
      // A status that HTTP/2 does not know: the pipeline meets it again, and tells of it.
      const { isClaimed, judged } = found.asked;
      return { kind: "pass", admission: isClaimed ? "claimed" : "admitted", judged };
    }
    this.#lookLater();
    return "answered";
  }

  #left(held: Held, ended: QuickStream, answer: QuickAnswer): void {
    held.leaving.delete(ended);
    this.#deps.recorder.quick(answer.asked, ended.outcomeOf(answer));
    this.#restIfDone(held);
  }

  #lookLater(): void {
    if (this.#isToLook) return;
    this.#isToLook = true;
    setTimeout(() => this.#look(), this.#limits.lookMs).unref();
  }

  #look(): void {
    this.#isToLook = false;
    for (const { leaving } of this.#held) {
      for (const quick of leaving) quick.look(this.#limits.takeMs);
      if (leaving.size > 0) this.#lookLater();
    }
  }

  #open(
    held: Held,
    stream: ServerHttp2Stream,
    raw: readonly string[],
    passed: QuickPass | undefined,
  ): void {
    const { runner } = this.#deps;
    const head = webSocketHead(raw, () => randomBytes(16).toString("base64"));
    const carrier =
      head === undefined ? new Http2Carrier(stream, raw) : new Http2ConnectCarrier(stream, head);
    const expects = fieldValue(carrier.fields, "expect")?.toLowerCase();
    const awaitsContinue = expects === "100-continue";
    const exchange = runner.open(carrier, held.connection, awaitsContinue, () =>
      this.#restIfDone(held),
    );
    // A stream whose answer has ended cannot be reset any more.
    stream.once("aborted", () => this.#count(held, "resets"));
    if (expects !== undefined && !awaitsContinue)
      sendText(exchange, 417, "The only expectation met is 100-continue.");
    else if (passed === undefined) runner.begin(exchange);
    else runner.beginPassed(exchange, passed);
  }

  #restIfDone(held: Held): void {
    if (!isResting(held)) return;
    held.turns.rested();
    this.#rest(held);
  }

  /** To be told when no stream is left. The timer is not set anew for each of them. */
  #rest(held: Held): void {
    if (held.session.destroyed) return; // Forgotten already.
    if (held.session.closed) {
      this.#forget(held);
      return;
    }
    held.restsSinceMs = this.#deps.clock.steadyMs();
    held.timer ??= setTimeout(() => this.#lookIdle(held), this.#limits.idleMs);
  }

  #lookIdle(held: Held): void {
    held.timer = undefined;
    if (!isResting(held)) return;
    const leftMs = held.restsSinceMs + this.#limits.idleMs - this.#deps.clock.steadyMs();
    if (leftMs > 0) {
      held.timer = setTimeout(() => this.#lookIdle(held), leftMs);
      return;
    }
    held.session.close();
    this.#forget(held);
  }

  /** The session waits for its last frames to be taken: by one who has gone without a word, until the system gives him up. */
  #forget(held: Held, afterMs = goodbyeMs): void {
    clearTimeout(held.timer);
    held.timer = setTimeout(() => held.connection.socket.destroy(), afterMs);
  }

  #lookOverheadLater(): NodeJS.Timeout {
    const afterMs = Math.max(this.#limits.overheadLookMs, this.#held.size / looksPerMs);
    return setTimeout(() => this.#lookOverhead(), afterMs).unref();
  }

  #lookOverhead(): void {
    const nowMs = this.#deps.clock.steadyMs();
    for (const held of this.#held)
      if (!held.session.destroyed && held.overhead.isTooMuch(nowMs)) this.#cut(held, "overhead");
    this.#overheadLooks = this.#held.size > 0 ? this.#lookOverheadLater() : undefined;
  }

  #count(held: Held, what: "resets" | "control"): void {
    if (held.session.destroyed || held[what].take(this.#deps.clock.steadyMs())) return;
    this.#cut(held, what);
  }

  #cut(held: Held, what: Exclude<keyof typeof cutReasons, "protocol">): void {
    this.#tellCut(held, what);
    held.turns.clear();
    held.session.destroy(new Error(`too many ${what}`), constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#forget(held);
  }

  #tellCut({ connection }: Held, what: keyof typeof cutReasons): void {
    const { metrics, problems } = this.#deps;
    metrics.accel_agent_http2_connections_cut_total.inc({ reason: what });
    problems.tell("warn", null, cutReasons[what], connection.peer?.text);
    this.offenders.add(connection.peer);
  }

  #closed(held: Held): void {
    clearTimeout(held.timer);
    held.turns.clear();
    this.#held.delete(held);
    this.#deps.metrics.accel_agent_open_connections.dec();
    for (const exchange of held.connection.live) exchange.end();
    for (const quick of held.leaving) quick.end();
  }
}

/** Returns whether it is left without a stream. */
function isResting({ connection, leaving, turns }: Held): boolean {
  return connection.live.size === 0 && leaving.size === 0 && turns.isEmpty;
}
