// The lane of a listener: its connections, and what becomes of their requests.

import { Roster } from "../../../core/roster.ts";
import type { WorkerClock } from "../clock.ts";
import type { ExchangeRunner } from "../doors/exchange-runner.ts";
import type { Connection } from "../doors/exchange.ts";
import { requestLineIn } from "../doors/raw-answer.ts";
import type { Recorder, RequestLine } from "../records/recorder.ts";
import { LaneConnection, type LaneDeps } from "./lane-connection.ts";
import type { LentSocket } from "./lent-socket.ts";
import type { QuickAnswers } from "./quick-answers.ts";
import { RecentFields } from "./recent-fields.ts";
import { LaneSweep } from "./sweep.ts";
import { LaneTurns } from "./turns.ts";

export type LaneOptions = {
  readonly quick: Pick<QuickAnswers, "answer">;
  readonly runner: ExchangeRunner;
  readonly recorder: Recorder;
  readonly clock: WorkerClock;
  /** See SweepDeps. */
  readonly headMs: number;
  readonly lookMs?: number | undefined;
  readonly isDraining: () => boolean;
  readonly usesLane: () => boolean;
  /** Serves what is lent as node:http does. */
  readonly lend: (lent: LentSocket) => void;
  /** Answers what never became a request, and ends the connection. */
  readonly refuse: (connection: Connection, status: number, line: RequestLine) => void;
};

export class VisitorLane implements Disposable {
  readonly #options: LaneOptions;
  readonly #deps: LaneDeps;
  readonly #lanes = new Roster<LaneConnection>();
  readonly #byConnection = new WeakMap<Connection, LaneConnection>();
  readonly #sweep: LaneSweep;
  readonly #turns = new LaneTurns();

  constructor(options: LaneOptions) {
    this.#options = options;
    const { quick, recorder, clock, runner, isDraining, usesLane, headMs, lookMs } = options;
    this.#deps = {
      quick,
      recorder,
      clock,
      recent: new RecentFields(),
      isDraining,
      usesLane,
      open: (carrier, connection, onEnd) => runner.open(carrier, connection, false, onEnd),
      turns: this.#turns,
      pass: (exchange, passed) => runner.beginPassed(exchange, passed),
      lend: options.lend,
    };
    this.#sweep = new LaneSweep({
      clock,
      headMs,
      lookMs,
      connections: () => this.#lanes,
      onLate: (lane) => this.#refuseLate(lane),
    });
  }

  /** Serves a new connection. */
  take(connection: Connection): void {
    const lane = new LaneConnection(connection, this.#deps);
    this.#lanes.add(lane);
    this.#byConnection.set(connection, lane);
  }

  /** To be told when an exchange of node:http has ended: the lane may go on. */
  lentAnswered(connection: Connection): void {
    this.#byConnection.get(connection)?.lentAnswered();
  }

  /** Leaves a connection to somebody else, if it has it, and returns what has come and was not read. */
  leave(connection: Connection): Buffer | undefined {
    return this.#byConnection.get(connection)?.leave();
  }

  /** To be told when a connection has closed. */
  closed(connection: Connection): void {
    const lane = this.#byConnection.get(connection);
    if (lane === undefined) return;
    lane.closed();
    this.#lanes.delete(lane);
    this.#byConnection.delete(connection);
  }

  [Symbol.dispose](): void {
    this.#sweep[Symbol.dispose]();
    this.#turns[Symbol.dispose]();
  }

  #refuseLate(lane: LaneConnection): void {
    const line = requestLineIn(lane.unread, 0);
    lane.leave();
    this.#options.refuse(lane.connection, 408, line);
  }
}
