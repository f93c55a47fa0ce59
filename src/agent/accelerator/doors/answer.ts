// Sending answers: heads, whole bodies, streamed bodies at the visitor's pace.

import { STATUS_CODES } from "node:http";
import { withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Exchange } from "./exchange.ts";

export type AnswerBody = Uint8Array | AnswerPieces;
export type AnswerPieces = AsyncIterable<Uint8Array> & {
  /** Told that the pieces so far have left: their memory may be written over. */
  giveBack?(): void;
};

/** `answered`: the visitor has an answer or has left. `nothing-sent`: what was to be sent turned out not to be there any more, and another look may find something else. */
export type Attempt = "answered" | "nothing-sent";

/** A visitor who takes nothing for this long is cut off: a body in memory must not wait forever. */
export const stallMs = 60_000;

/** Cache name of RFC 9211. */
export const cacheName = "accel-agent";

export function cacheStatus(parameters: string): Field {
  return ["Cache-Status", `${cacheName}; ${parameters}`];
}

/** Throws only for fields that HTTP cannot carry. The body, if any, follows. */
export function writeHead(exchange: Exchange, status: number, fields: readonly Field[]): void {
  exchange.response.writeHead(status, flatHead(fields, exchange.hstsS));
}

/** Returns names and values in turn, with the site's own HSTS if it has one. */
export function flatHead(fields: readonly Field[], hstsS: number): string[] {
  const flat: string[] = [];
  for (const field of withHsts(fields, hstsS)) flat.push(field[0], field[1]);
  return flat;
}

const hstsName: ReadonlySet<string> = new Set(["strict-transport-security"]);

/** Puts the site's own HSTS in the place of its origin's: the devlove speaks for the whole host. */
function withHsts(fields: readonly Field[], seconds: number): readonly Field[] {
  if (seconds === 0) return fields;
  const said: Field = ["Strict-Transport-Security", `max-age=${seconds}`];
  return [...withoutFields(fields, hstsName), said];
}

/**
 * Sends the head alone if no byte of the body follows it in this turn: a stream of events may begin with a
 * long silence. The caller clears it at the first byte.
 */
export function headSoon({ response }: Exchange): NodeJS.Immediate {
  return setImmediate(() => response.flushHeaders());
}

/** Resolves when the answer was handed to the socket or the visitor left. `head` is from headSoon, for a body that may be long in coming. */
export async function sendBody(
  exchange: Exchange,
  body: AnswerBody | undefined,
  head?: NodeJS.Immediate,
): Promise<void> {
  const { response, pacer } = exchange;
  if (body instanceof Uint8Array && pacer !== undefined) {
    await pacer.write(exchange, body);
    response.end();
    return;
  }
  if (body === undefined || body instanceof Uint8Array) {
    response.end(body);
    return;
  }
  for await (const chunk of body) {
    clearImmediate(head);
    await writeChunk(exchange, chunk);
    if (exchange.hasLeft) body.giveBack?.();
  }
  clearImmediate(head);
  response.end();
}

/** Resolves when more may be written. Throws when the visitor left. */
export async function writeChunk(exchange: Exchange, chunk: Uint8Array): Promise<void> {
  const { response, stop, pacer } = exchange;
  if (pacer !== undefined) {
    await pacer.write(exchange, chunk);
    return;
  }
  stop.throwIfAborted();
  if (response.write(chunk)) return;
  await exchange.drained(stallMs);
}

export function sendText(
  exchange: Exchange,
  status: number,
  text: string,
  extra: readonly Field[] = [],
): void {
  const said = textAnswer(status, text, extra);
  writeHead(exchange, status, said.fields);
  exchange.response.end(Buffer.from(said.body));
}

/** An answer of the agent's own, for people to read. */
export function textAnswer(
  status: number,
  text: string,
  extra: readonly Field[] = [],
): { readonly fields: readonly Field[]; readonly body: string } {
  const body = `${status} ${STATUS_CODES[status] ?? ""}\n${text}\n`;
  const fields: readonly Field[] = [
    ["Content-Type", "text/plain; charset=utf-8"],
    ["Content-Length", `${Buffer.byteLength(body)}`],
    ["X-Content-Type-Options", "nosniff"],
    ["Cache-Control", "no-store"],
    ...extra,
  ];
  return { fields, body };
}
