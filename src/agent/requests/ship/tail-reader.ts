// Main's end of a tail: it yields the requested records of the spool thread's ring, as fast as the reader
// takes them.

import type { MessagePort } from "node:worker_threads";
import { decodeRequestRecord, type RequestRecord } from "../../../wire/request-log.ts";
import type { TailQuery } from "../../../core/tail-query.ts";
import type { TailMessage } from "../spool/tail-ring.ts";

export type TailItem =
  /** The first item. False although following was asked for means that too many follow. */
  | { readonly following: boolean }
  | { readonly record: RequestRecord }
  /** The number of records left out here because they came faster than they were read. */
  | { readonly missed: number };

/**
 * Reads a tail. It closes the port when it ends: after the last line, with the signal, or when the reader
 * stops.
 */
export async function* readTail(
  port: MessagePort,
  query: TailQuery,
  signal: AbortSignal,
): AsyncGenerator<TailItem> {
  const inbox = new Inbox(port, signal);
  try {
    const first = await inbox.next();
    if (first === undefined) return;
    yield { following: !first.isLast };
    const there = recordsOf(first, query);
    for (const record of query.lines === 0 ? [] : there.slice(-query.lines)) yield { record };
    while (!inbox.last.isLast) {
      const message = await inbox.next();
      if (message === undefined) return;
      if (message.missed > 0) yield { missed: message.missed };
      for (const record of recordsOf(message, query)) yield { record };
    }
  } finally {
    port.close();
  }
}

/**
 * The lines that arrived and are not read yet. They are bounded by the ring, which waits to be told that a
 * message was taken.
 */
class Inbox {
  readonly #port: MessagePort;
  readonly #messages: TailMessage[] = [];
  #wake = Promise.withResolvers<void>();
  #isClosed: boolean;
  last: TailMessage = { payload: undefined, missed: 0, isLast: false };

  constructor(port: MessagePort, signal: AbortSignal) {
    this.#port = port;
    this.#isClosed = signal.aborted;
    // The other end is this program's own ring.
    port.on("message", (message) => this.#push(message as TailMessage));
    port.on("close", () => this.#close());
    signal.addEventListener("abort", () => this.#close(), { once: true });
  }

  /** Returns the next message; undefined when nothing more comes. */
  async next(): Promise<TailMessage | undefined> {
    while (this.#messages.length === 0) {
      if (this.#isClosed) return undefined;
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
    const message = this.#messages.shift();
    if (message === undefined) return undefined;
    this.last = message;
    this.#port.postMessage("more");
    return message;
  }

  #push(message: TailMessage): void {
    this.#messages.push(message);
    this.#wake.resolve();
  }

  #close(): void {
    this.#isClosed = true;
    this.#wake.resolve();
  }
}

/** Returns the requested records of a message; the only other lines of a group are canaries. */
function recordsOf({ payload }: TailMessage, query: TailQuery): readonly RequestRecord[] {
  if (payload === undefined) return [];
  return new TextDecoder()
    .decode(payload)
    .split("\n")
    .flatMap((line) => {
      const record = line === "" ? undefined : decodeRequestRecord(JSON.parse(line));
      return record?.ok === true && isAskedFor(record.value, query) ? [record.value] : [];
    });
}

function isAskedFor(record: RequestRecord, { domain, status }: TailQuery): boolean {
  const { authority, response_status: code } = record;
  if (status !== undefined && (code < status.least || code > status.most)) return false;
  if (domain === undefined || record.domain === domain) return true;
  return authority.toLowerCase().replace(/:\d+$/, "") === domain;
}
