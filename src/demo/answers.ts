// What the demo's origin answers: one route for each thing an edge must get right.

import { createHash } from "node:crypto";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { sleep } from "../base/wait.ts";
import { cardSeedMax, drawCard } from "./card.ts";
import { logPageMax, writeLogPage } from "./logbook.ts";

export type Ask = {
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  /** How often this path was asked for, this time included. */
  readonly count: number;
  /** Aborts when the visitor left or the backend stops. */
  readonly ended: AbortSignal;
};
export type DemoAnswer = {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | AsyncIterable<string>;
};
type Route = {
  readonly path: RegExp;
  readonly methods: readonly string[];
  /** `part` is what the path's group matched, "" without a group. */
  readonly answer: (ask: Ask, part: string) => DemoAnswer | Promise<DemoAnswer>;
};

const slowMsMax = 5_000;
const streamIntervalMsMax = 250;
const cacheable = "public, max-age=600";
/** The date when the drawing was made up; a drawing from a seed never changes. */
const drawnAt = "Thu, 01 Jan 2026 00:00:00 GMT";

const reading = ["GET", "HEAD"];
const text = (status: number, body: string, headers: OutgoingHttpHeaders = {}): DemoAnswer => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", ...headers },
  body,
});
const json = (value: unknown): DemoAnswer =>
  text(200, `${JSON.stringify(value, null, 2)}\n`, { "content-type": "application/json" });

const routes: readonly Route[] = [
  {
    path: /^\/api\/clock$/,
    methods: reading,
    answer: ({ count }) => json({ time: new Date().toISOString(), count }),
  },
  { path: /^\/generated\/card\.svg$/, methods: reading, answer: answerCard },
  { path: /^\/generated\/page\/(\d{1,7})\.html$/, methods: reading, answer: answerLogPage },
  { path: /^\/slow$/, methods: reading, answer: answerSlow },
  {
    path: /^\/status\/(\d{3})$/,
    methods: [...reading, "POST", "PUT", "DELETE"],
    answer: (_, part) => answerStatus(Number(part)),
  },
  {
    path: /^\/set-cookie$/,
    methods: reading,
    answer: ({ count }) =>
      text(200, `visit ${count}\n`, {
        "cache-control": cacheable,
        "set-cookie": `visit=${count}; Path=/; HttpOnly; SameSite=Lax`,
      }),
  },
  {
    path: /^\/private$/,
    methods: reading,
    answer: ({ count }) =>
      text(200, `for you alone, number ${count}\n`, { "cache-control": "private, max-age=600" }),
  },
  { path: /^\/echo$/, methods: ["POST", "PUT"], answer: answerEcho },
  { path: /^\/stream$/, methods: reading, answer: answerStream },
];

function answerCard({ request, query }: Ask): DemoAnswer {
  const seed = integerIn(query.get("seed") ?? "1", 0, cardSeedMax);
  if (seed === undefined) return text(400, `seed must be an integer from 0 to ${cardSeedMax}\n`);
  const svg = drawCard(seed);
  const etag = `"${createHash("sha256").update(svg).digest("hex").slice(0, 16)}"`;
  const headers = {
    "content-type": "image/svg+xml",
    "cache-control": cacheable,
    etag,
    "last-modified": drawnAt,
  };
  return isUnchanged(request, etag)
    ? { status: 304, headers, body: "" }
    : { status: 200, headers, body: svg };
}

/**
 * Answers preconditions by RFC 9110 §13.2.2: If-None-Match, by weak comparison, decides alone if both are
 * sent.
 */
function isUnchanged({ headers }: IncomingMessage, etag: string): boolean {
  const noneMatch = headers["if-none-match"];
  if (noneMatch !== undefined)
    return noneMatch.split(",").some((tag) => ["*", etag, `W/${etag}`].includes(tag.trim()));
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return since >= Date.parse(drawnAt);
}

function answerLogPage(_: Ask, part: string): DemoAnswer {
  const page = integerIn(part, 0, logPageMax);
  if (page === undefined) return text(404, "the log has no such page\n");
  return {
    status: 200,
    headers: { "content-type": "text/html; charset=utf-8", "cache-control": cacheable },
    body: writeLogPage(page),
  };
}

async function answerSlow({ query, ended }: Ask): Promise<DemoAnswer> {
  const asked = integerIn(query.get("ms") ?? "1000", 0, Number.MAX_SAFE_INTEGER);
  if (asked === undefined) return text(400, "ms must be an integer\n");
  const ms = Math.min(asked, slowMsMax);
  if (!(await sleep(ms, ended))) return text(503, "the origin is stopping\n");
  return text(200, `answered after ${ms} ms\n`);
}

function answerStatus(status: number): DemoAnswer {
  if (status < 200 || status > 599) return text(400, "the status must be from 200 to 599\n");
  return text(
    status,
    `status ${status}\n`,
    [301, 302, 303, 307, 308].includes(status) ? { location: "/" } : {},
  );
}

async function answerEcho({ request }: Ask): Promise<DemoAnswer> {
  let bodyBytes = 0;
  for await (const chunk of request) {
    const bytes: Buffer = chunk;
    bodyBytes += bytes.length;
  }
  return json({
    method: request.method,
    url: request.url,
    headers: request.headers,
    body_bytes: bodyBytes,
  });
}

function answerStream({ query, ended }: Ask): DemoAnswer {
  const chunks = integerIn(query.get("chunks") ?? "8", 1, 100);
  const intervalMs = integerIn(query.get("ms") ?? "50", 0, streamIntervalMsMax);
  if (chunks === undefined || intervalMs === undefined)
    return text(400, `chunks must be from 1 to 100, ms from 0 to ${streamIntervalMsMax}\n`);
  const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
  return { status: 200, headers, body: swell(chunks, intervalMs, ended) };
}

async function* swell(
  chunks: number,
  intervalMs: number,
  ended: AbortSignal,
): AsyncGenerator<string> {
  for (let number = 1; number <= chunks; number++) {
    if (number > 1 && !(await sleep(intervalMs, ended))) return;
    yield `wave ${number} of ${chunks}\n`;
  }
}

/** Reads decimal digits only. Returns undefined for anything else, and outside [least, most]. */
export function integerIn(value: string, least: number, most: number): number | undefined {
  const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}

/**
 * Answers a path, which is absolute and without a query. An unknown one gets 404, a known one with another
 * method 405.
 */
export async function answerTo(path: string, ask: Ask): Promise<DemoAnswer> {
  const method = ask.request.method ?? "GET";
  for (const route of routes) {
    const match = route.path.exec(path);
    if (match === null) continue;
    if (!route.methods.includes(method))
      return text(405, `${path} answers ${route.methods.join(", ")}\n`, {
        allow: route.methods.join(", "),
      });
    return route.answer(ask, match[1] ?? "");
  }
  return text(404, `the origin has nothing at ${path}\n`);
}
