// Bodies of requests on their way to an origin. Unless the site wants them streamed they are taken in whole before the origin is asked: a visitor who sends
// slowly then holds a few KiB here, and never one of the origin's connections. Once a second each body that is waited for is looked at.

import { messageOf } from "../../../core/faults.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import type { WorkerClock } from "../clock.ts";
import type { Exchange } from "../doors/exchange.ts";
import { sendText } from "../doors/answer.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { BodyFault, BodyPieces, type BodyPace } from "./body-pieces.ts";
import { HeldBody, MemoryRoom, type HeldBodyRooms } from "./held-body.ts";
import { SharedBudget, type BudgetShare } from "./shared-budget.ts";

export type RequestBodyLimits = BodyPace & {
  /** The memory of one worker for bodies, bytes. */
  readonly memoryMax: number;
  /** The room for files, of all workers together. */
  readonly disk: BudgetShare;
  /** Where the files are made. */
  readonly directory: string;
};

export type RequestBodiesDeps = {
  readonly limits: RequestBodyLimits;
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
  /** The time between two looks; a second unless told. */
  readonly lookMs?: number | undefined;
};

export type BodyWanted = {
  /** The most bytes that the site takes. */
  readonly bytesMax: number;
  /** It is passed on as it comes. */
  readonly streams: boolean;
};

/** A body that goes to an origin; disposed when it is not needed any more. */
export type RequestBody = AsyncDisposable & {
  /** The stated or known length; undefined for one that streams in chunks. */
  readonly length: string | undefined;
  readonly content: Uint8Array | (() => AsyncGenerator<Uint8Array>);
  /** What went wrong with one that streams. */
  readonly fault: BodyFault | undefined;
};

const lookMsDefault = 1_000;
const retryAfterS = 5;

export class RequestBodies implements Disposable {
  readonly #deps: RequestBodiesDeps;
  readonly #rooms: HeldBodyRooms;
  readonly #open = new Set<BodyPieces>();
  readonly #timer: NodeJS.Timeout;

  constructor(deps: RequestBodiesDeps) {
    this.#deps = deps;
    const { memoryMax, disk, directory } = deps.limits;
    this.#rooms = { memory: new MemoryRoom(memoryMax), disk: new SharedBudget(disk), directory };
    this.#timer = setInterval(() => this.#look(), deps.lookMs ?? lookMsDefault).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /**
   * Takes the body of a request in, or prepares its stream. Undefined: the request has none. `refused`: the
   * visitor has been told, or has left. Never throws.
   */
  async take(
    exchange: Exchange,
    { bytesMax, streams }: BodyWanted,
  ): Promise<RequestBody | undefined | "refused"> {
    const { body } = exchange;
    if (!exchange.hasBody || body === undefined) return undefined;
    const { clock, limits } = this.#deps;
    const pieces = new BodyPieces(exchange, body, { bytesMax, pace: limits, clock });
    this.#open.add(pieces);
    if (streams) return this.#stream(exchange, pieces);
    const held = new HeldBody(this.#rooms);
    try {
      await this.#hold(exchange, pieces, held);
      this.#count(held.isFile ? "file" : "memory");
      return {
        length: String(held.length),
        content: held.content,
        fault: undefined,
        [Symbol.asyncDispose]: async () => this.#drop(held),
      };
    } catch (error) {
      await this.#drop(held);
      this.refuse(exchange, faultOf(error));
      return "refused";
    } finally {
      this.#close(pieces);
    }
  }

  /** Tells the visitor why his body is not taken, if he is still there. */
  refuse(exchange: Exchange, fault: BodyFault): void {
    this.#count(fault.kind.replace("-", "_"));
    if (fault.kind === "no-room")
      this.#deps.problems.tell("warn", exchange.domain, "no room for a request body", fault);
    if (fault.kind === "gone" || exchange.isGone || exchange.response.headersSent) return;
    const { status, text, fields } = this.#answerTo(fault, exchange);
    // A request that is not complete holds up whatever follows it on its connection.
    if (exchange.httpVersion !== "2" && fault.kind === "late") exchange.endConnection();
    sendText(exchange, status, text, fields);
  }

  async #hold(exchange: Exchange, pieces: BodyPieces, held: HeldBody): Promise<void> {
    const { bytesMax } = this.#rooms.disk;
    const stated = Number(fieldValue(exchange.fields, "content-length") ?? 0);
    if (stated > bytesMax) throw new BodyFault("no-room", `${stated} bytes have no room in files`);
    if (exchange.awaitsContinue) exchange.response.writeContinue();
    for (;;) {
      const next = pieces.next();
      const piece = next instanceof Promise ? await next : next;
      if (piece === undefined) return;
      const written = held.append(piece);
      if (written !== undefined) await written;
      this.#tell();
    }
  }

  #stream(exchange: Exchange, pieces: BodyPieces): RequestBody {
    this.#count("streamed");
    let fault: BodyFault | undefined;
    async function* read(): AsyncGenerator<Uint8Array> {
      if (exchange.awaitsContinue) exchange.response.writeContinue();
      try {
        for (;;) {
          const piece = await pieces.next();
          if (piece === undefined) return;
          yield piece;
        }
      } catch (error) {
        fault = faultOf(error);
        throw error;
      }
    }
    return {
      length: fieldValue(exchange.fields, "content-length"),
      content: read,
      get fault() {
        return fault;
      },
      [Symbol.asyncDispose]: async () => this.#close(pieces),
    };
  }

  #answerTo(
    { kind, message }: BodyFault,
    exchange: Exchange,
  ): { readonly status: number; readonly text: string; readonly fields: readonly Field[] } {
    if (kind === "too-large") return { status: 413, text: message, fields: [] };
    if (kind === "late")
      return { status: 408, text: "The body of the request came too slowly.", fields: [] };
    const { bytesMax } = this.#rooms.disk;
    if (Number(fieldValue(exchange.fields, "content-length") ?? 0) > bytesMax) {
      const text = `This server takes bodies of ${bytesMax} bytes at most.`;
      return { status: 413, text, fields: [] };
    }
    const text = "This server has no room for the body of the request now.";
    return { status: 503, text, fields: [["Retry-After", String(retryAfterS)]] };
  }

  async #drop(held: HeldBody): Promise<void> {
    try {
      await held[Symbol.asyncDispose]();
    } catch (error) {
      this.#deps.problems.tell("warn", null, "a request body was not closed", messageOf(error));
    }
    this.#tell();
  }

  #close(pieces: BodyPieces): void {
    this.#open.delete(pieces);
    pieces[Symbol.dispose]();
  }

  #look(): void {
    for (const pieces of this.#open) pieces.look();
  }

  #count(outcome: string): void {
    this.#deps.metrics.accel_agent_request_bodies_total.inc({ outcome });
  }

  #tell(): void {
    const { accel_agent_request_body_bytes: bytes } = this.#deps.metrics;
    bytes.set({ where: "memory" }, this.#rooms.memory.taken);
    bytes.set({ where: "file" }, this.#rooms.disk.own);
  }
}

/** What is no fault of a body is one of ours: the visitor is told that there is no room. */
function faultOf(error: unknown): BodyFault {
  return error instanceof BodyFault ? error : new BodyFault("no-room", messageOf(error));
}
