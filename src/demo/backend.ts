// The demo's origin: a plain HTTP server. Every answer says in `X-Origin-Request` how often its path reached
// the origin; a response that repeats a number came from a cache.

import type { IncomingMessage, ServerResponse } from "node:http";
import { listenHttp } from "../base/http-listener.ts";
import { messageOf } from "../core/faults.ts";
import { answerTo, type DemoAnswer } from "./answers.ts";

export type DemoBackend = AsyncDisposable & { readonly url: string };
export type DemoBackendOptions = {
  readonly host: string;
  readonly port: number;
  readonly stop: AbortSignal;
};

/**
 * The most paths counted at once, about 1 MB of names; beyond it, the path counted first starts again at 1.
 */
const countedPathsMax = 10_000;
/** A demo stops at once: no download is worth waiting for. */
const closeGraceMs = 250;

class RequestCounter {
  readonly #counts = new Map<string, number>();

  next(path: string): number {
    const count = (this.#counts.get(path) ?? 0) + 1;
    if (count === 1 && this.#counts.size >= countedPathsMax) {
      for (const first of this.#counts.keys()) {
        this.#counts.delete(first);
        break;
      }
    }
    this.#counts.set(path, count);
    return count;
  }
}

async function send(
  answer: DemoAnswer,
  count: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const bodyless = answer.status === 204 || answer.status === 205 || answer.status === 304;
  const whole = typeof answer.body === "string" && !bodyless;
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(whole ? { "content-length": Buffer.byteLength(answer.body) } : {}),
    "x-content-type-options": "nosniff",
    "x-origin-request": String(count),
  });
  if (request.method === "HEAD" || bodyless) response.end();
  else if (typeof answer.body === "string") response.end(answer.body);
  else {
    for await (const chunk of answer.body) {
      if (response.destroyed) return;
      response.write(chunk);
    }
    response.end();
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  counter: RequestCounter,
  stop: AbortSignal,
): Promise<void> {
  const left = new AbortController();
  response.once("close", () => left.abort());
  try {
    const { pathname, searchParams } = new URL(
      `http://origin${request.url?.startsWith("/") === true ? request.url : "/"}`,
    );
    const count = counter.next(pathname);
    const answer = await answerTo(pathname, {
      request,
      query: searchParams,
      count,
      ended: AbortSignal.any([stop, left.signal]),
    });
    await send(answer, count, request, response);
  } catch (error) {
    // If the visitor left in the middle of a body, there is nobody to tell.
    if (response.headersSent || request.destroyed) response.destroy();
    else
      response
        .writeHead(500, {
          "content-type": "text/plain; charset=utf-8",
          "cache-control": "no-store",
        })
        .end(`${messageOf(error)}\n`);
  }
}

/**
 * Starts the backend; it listens when this resolves. `url` has no trailing slash. Port 0 takes a free one. It
 * ends when disposed or when `stop` aborts; disposing waits for the end.
 */
export async function startDemoBackend({
  host,
  port,
  stop,
}: DemoBackendOptions): Promise<DemoBackend> {
  const counter = new RequestCounter();
  const closing = new AbortController();
  const ended = AbortSignal.any([stop, closing.signal]);
  const listener = await listenHttp(
    (request, response) => void serve(request, response, counter, ended),
    { host, port },
    { graceMs: closeGraceMs },
  );
  let closed: Promise<void> | undefined;
  const close = (): void => {
    closed ??= Promise.resolve(listener[Symbol.asyncDispose]());
  };
  if (ended.aborted) close();
  else ended.addEventListener("abort", close, { once: true });
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${listener.port}`,
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await closed;
    },
  };
}
