// Connections to one origin over TLS, by undici: asked through a handler, which costs half of what its streams do.

import { Readable } from "node:stream";
import { Pool, type Dispatcher } from "undici";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { originConnector } from "./origin-connector.ts";
import { BodyGate, type BodyTaker, type OriginBody } from "./origin-body.ts";
import { fieldBytesMax } from "./response-head.ts";
import type { OriginConnections, PoolOptions, WireAnswer, WireRequest } from "./wire-request.ts";

export class TlsPool implements OriginConnections {
  readonly #pool: Pool;

  constructor({ origin, connectMs, guard, connectionsMax }: PoolOptions) {
    this.#pool = new Pool(origin.origin, {
      connections: connectionsMax,
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: fieldBytesMax,
      connect: originConnector(origin, connectMs, guard),
    });
  }

  ask(request: WireRequest, onOver: () => void): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      const { method, path, fields, body, stop, headMs, silenceMs } = request;
      const dispatched = new Dispatched(request, { resolve, reject, onOver });
      if (stop.aborted) return;
      this.#pool.dispatch(
        {
          method,
          path,
          headers: fields.flat(),
          body: typeof body === "function" ? lazily(body) : (body ?? null),
          headersTimeout: headMs,
          bodyTimeout: silenceMs,
        },
        dispatched,
      );
    });
  }

  async destroy(): Promise<void> {
    await this.#pool.destroy();
  }
}

type Settle = {
  readonly resolve: (answer: WireAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly onOver: () => void;
};

class Dispatched implements OriginBody, Dispatcher.DispatchHandler {
  readonly #request: WireRequest;
  readonly #settle: Settle;
  #controller: Dispatcher.DispatchController | undefined;
  #left = Infinity;
  #isAnswered = false;
  #isOver = false;
  readonly #gate = new BodyGate({
    pause: () => {
      if (!this.#isOver) this.#controller?.pause();
    },
    resume: () => {
      if (!this.#isOver && this.#controller?.paused === true) this.#controller.resume();
    },
  });
  readonly #onStop = (): void => this.#fail(asError(this.#request.stop.reason));

  constructor(request: WireRequest, settle: Settle) {
    this.#request = request;
    this.#settle = settle;
    if (request.stop.aborted) this.#onStop();
    else request.stop.addEventListener("abort", this.#onStop);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error("the request is not wanted any more"));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const fields = fieldsOf(controller.rawHeaders);
    if (status < 200) {
      if (status !== 100) this.#request.onInterim?.(status, fields);
      return;
    }
    const length = fieldValue(fields, "content-length");
    if (length !== undefined) this.#left = Number(length);
    this.#isAnswered = true;
    this.#settle.resolve({ status, fields, body: this });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#left -= chunk.length;
    this.#gate.give(chunk, this.#left === 0);
  }

  onResponseEnd(): void {
    this.#over();
    this.#gate.end("complete");
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#over();
    this.#controller?.abort(error);
    if (this.#isAnswered) this.#gate.end(error);
    else this.#settle.reject(error);
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request.stop.removeEventListener("abort", this.#onStop);
    this.#settle.onOver();
  }

  flow(taker: BodyTaker): void {
    this.#gate.flow(taker);
  }

  resume(): void {
    this.#gate.resume();
  }

  discard(): void {
    this.#gate.drop();
    if (this.#isOver) return;
    this.#over();
    this.#controller?.abort(new Error("the answer is not wanted any more"));
  }
}

/** Undici gives names and values as bytes, in turn. */
function fieldsOf(raw: Dispatcher.DispatchController["rawHeaders"]): readonly Field[] {
  if (!Array.isArray(raw)) return [];
  const fields: Field[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2)
    fields.push([textOf(raw[at]), textOf(raw[at + 1])]);
  return fields;
}

function textOf(part: unknown): string {
  return Buffer.isBuffer(part) ? part.toString("latin1") : String(part);
}

/** The generator begins when undici first reads: a connection that fails leaves the visitor's body untouched. */
function lazily(body: () => AsyncGenerator<Uint8Array>): Readable {
  async function* begin(): AsyncGenerator<Uint8Array> {
    yield* body();
  }
  return Readable.from(begin(), { objectMode: false });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
