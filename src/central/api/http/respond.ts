// Sends an answer: JSON, nothing, a problem document, or a list or a long text piece by piece at the reader's
// pace.

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { closeOf } from "../../../base/wait.ts";
import type { Answer, EventsAnswer, FileAnswer, ListAnswer, StreamAnswer } from "./answer.ts";
import { invalid } from "./answer.ts";
import { queryOf } from "./query.ts";

export const listLimitMax = 1_000;
/** The rows read in one transaction while a whole list is sent; other transactions run in between. */
const pageRows = 500;

/**
 * Sends an answer. Resolves when all is handed over. Rejects if a page cannot be read; part of the list may
 * then be out. Sends nothing if the request was answered otherwise while the first part was read.
 */
export async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
): Promise<void> {
  switch (answer.kind) {
    case "json":
      return sendJson(response, answer.status, "application/json", answer.body, answer.headers);
    case "problem":
      return sendJson(
        response,
        answer.status,
        "application/problem+json",
        answer.problem,
        answer.headers,
      );
    case "empty":
      response.writeHead(204, { ...answer.headers }).end();
      return;
    case "list":
      return sendList(request, response, answer);
    case "stream":
      return sendPieces(response, answer);
    case "file":
      return sendFile(request, response, answer);
    case "events":
      return sendEvents(request, response, answer);
    default:
      answer satisfies never;
  }
}

function sendJson(
  response: ServerResponse,
  status: number,
  type: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  // A text goes out with the head in one piece; bytes would be a second one.
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  response.writeHead(status, { "content-type": type, "content-length": length, ...headers });
  response.end(text);
}

/** Where a list goes on, and how much of it is wanted; an undefined limit means all. */
export type ListQuery = { readonly after: number; readonly limit: number | undefined };

export function parseListQuery(query: URLSearchParams): ListQuery | undefined {
  const after = query.get("after") ?? "0";
  const limit = query.get("limit");
  if (!/^\d{1,15}$/.test(after)) return undefined;
  if (limit === null) return { after: Number(after), limit: undefined };
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > listLimitMax)
    return undefined;
  return { after: Number(after), limit: Number(limit) };
}

async function sendList(
  request: IncomingMessage,
  response: ServerResponse,
  { page }: ListAnswer,
): Promise<void> {
  const [path = ""] = (request.url ?? "").split("?", 1);
  const query = parseListQuery(queryOf(request.url ?? ""));
  if (query === undefined) {
    const message = `limit must be 1 to ${listLimitMax}, after an id`;
    return respond(request, response, invalid([{ path: "?limit&after", message }]));
  }
  if (query.limit !== undefined) {
    const rows = await page({ after: query.after, limit: query.limit + 1 });
    if (response.writableEnded) return;
    const shown = rows.slice(0, query.limit);
    const last = shown.at(-1)?.id;
    const link =
      rows.length > shown.length && last !== undefined
        ? { link: `<${path}?${onward(request, last)}>; rel="next"` }
        : {};
    return sendJson(response, 200, "application/json", shown, link);
  }
  await streamList(response, query.after, page);
}

/** The query of the next page: what was asked, from there on. */
function onward(request: IncomingMessage, last: number): string {
  const query = queryOf(request.url ?? "");
  query.set("after", String(last));
  return query.toString();
}

async function streamList(
  response: ServerResponse,
  start: number,
  page: ListAnswer["page"],
): Promise<void> {
  let after: number | undefined = start;
  let separator = "[";
  while (after !== undefined) {
    // The first page is read before the head is sent, so that a failure there is still a plain 500.
    const rows = await page({ after, limit: pageRows });
    if (response.writableEnded) return;
    if (!response.headersSent) response.writeHead(200, { "content-type": "application/json" });
    for (const row of rows) {
      const isTaken = response.write(separator + JSON.stringify(row));
      separator = ",";
      if (!isTaken && !(await drained(response))) return;
    }
    after = rows.length === pageRows ? rows.at(-1)?.id : undefined;
  }
  response.end(separator === "[" ? "[]" : "]");
}

async function sendPieces(
  response: ServerResponse,
  { pieces, headers }: StreamAnswer,
): Promise<void> {
  for await (const piece of pieces()) {
    if (response.writableEnded) return;
    // As with lists, a failure before the first piece is still a plain 500.
    if (!response.headersSent)
      response.writeHead(200, { "content-type": "application/json", ...headers });
    if (!response.write(piece) && !(await drained(response))) return;
  }
  response.end();
}

async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  { size, open, headers }: FileAnswer,
): Promise<void> {
  if (request.method === "HEAD") {
    response.writeHead(200, { ...headers, "content-length": size }).end();
    return;
  }
  // What cannot be opened is still a problem document.
  const file = await open();
  if (response.writableEnded) {
    file.destroy();
    return;
  }
  response.writeHead(200, { ...headers, "content-length": size });
  await pipeline(file, response).catch((error: unknown) => {
    if (!response.destroyed || response.writableFinished) throw error; // Otherwise the reader left.
  });
}

/** Resolves when the stream has ended. */
async function sendEvents(
  request: IncomingMessage,
  response: ServerResponse,
  { headers, begin }: EventsAnswer,
): Promise<void> {
  if (request.method === "HEAD") {
    response.writeHead(200, headers).end();
    return;
  }
  if (response.closed) return;
  const closed = closeOf(response);
  const begun = begin({
    get waitingBytes() {
      return response.writableLength;
    },
    write: (text) => {
      if (!response.headersSent) response.writeHead(200, headers);
      response.write(text);
    },
    end: () => void response.end(),
    cut: () => void response.destroy(),
  });
  if ("kind" in begun) return respond(request, response, begun);
  await closed;
  begun.left();
}

/** Waits until there is room. Returns false if the reader left. */
async function drained(response: ServerResponse): Promise<boolean> {
  if (response.destroyed) return false;
  const settled = new AbortController();
  try {
    await Promise.race([
      once(response, "drain", { signal: settled.signal }),
      once(response, "close", { signal: settled.signal }),
    ]);
  } finally {
    settled.abort();
  }
  return !response.destroyed;
}
