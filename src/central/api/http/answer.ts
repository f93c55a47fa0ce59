// What a request is answered with, as a value; respond.ts sends it.

import { STATUS_CODES } from "node:http";
import type { Readable } from "node:stream";
import type { Problem, ProblemError } from "../../../wire/customer/problem.ts";
import type { PageRange } from "../../store/engine/work.ts";

type Headers = Readonly<Record<string, string>>;

export type JsonAnswer = {
  readonly kind: "json";
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Headers;
};
export type EmptyAnswer = {
  readonly kind: "empty";
  readonly status: 204;
  readonly headers?: Headers;
};
/** A plain array in order of id, read page by page while it is sent. */
export type ListAnswer = {
  readonly kind: "list";
  readonly status: 200;
  readonly page: (range: PageRange) => Promise<readonly { readonly id: number }[]>;
};
/** A JSON text in pieces, each made when the one before was taken. */
export type StreamAnswer = {
  readonly kind: "stream";
  readonly status: 200;
  readonly pieces: () => AsyncIterable<string>;
  readonly headers?: Headers;
};
/** A file of known size. */
export type FileAnswer = {
  readonly kind: "file";
  readonly status: 200;
  readonly size: number;
  /** Resolves when there is something to read. */
  readonly open: () => Promise<Readable>;
  readonly headers: Headers;
};
export type ProblemAnswer = {
  readonly kind: "problem";
  readonly status: number;
  readonly problem: Problem;
  readonly headers?: Headers;
};
/** The reader of a stream of events. */
export type EventSink = {
  /** Bytes that were written and that the system has not taken yet. */
  readonly waitingBytes: number;
  write(text: string): void;
  /** Ends the stream behind what was written. */
  end(): void;
  /** Ends it at once. */
  cut(): void;
};

/** A stream of Server-Sent Events. */
export type EventsAnswer = {
  readonly kind: "events";
  readonly status: 200;
  readonly headers: Headers;
  /** Begins to write, or refuses; nothing was sent then. `left` is called once, when the reader is gone. */
  readonly begin: (sink: EventSink) => { readonly left: () => void } | ProblemAnswer;
};
export type Answer =
  | JsonAnswer
  | EmptyAnswer
  | ListAnswer
  | StreamAnswer
  | FileAnswer
  | EventsAnswer
  | ProblemAnswer;

export function ok(body: unknown, headers: Headers = {}): JsonAnswer {
  return { kind: "json", status: 200, body, headers };
}

export function created(body: unknown): JsonAnswer {
  return { kind: "json", status: 201, body };
}

export const noContent: EmptyAnswer = { kind: "empty", status: 204 };

export function list(page: ListAnswer["page"]): ListAnswer {
  return { kind: "list", status: 200, page };
}

export function stream(pieces: StreamAnswer["pieces"], headers: Headers = {}): StreamAnswer {
  return { kind: "stream", status: 200, pieces, headers };
}

type ProblemParts = {
  readonly errors?: readonly ProblemError[];
  readonly headers?: Headers;
  readonly requestId?: string;
};

/**
 * Makes a problem document. Its type is `about:blank`, so the title is that of the status (RFC 9457 §4.2.1).
 */
export function problem(status: number, detail: string, parts: ProblemParts = {}): ProblemAnswer {
  return {
    kind: "problem",
    status,
    problem: {
      type: "about:blank",
      title: STATUS_CODES[status] ?? "Error",
      status,
      detail,
      ...(parts.errors !== undefined && { errors: [...parts.errors] }),
      ...(parts.requestId !== undefined && { request_id: parts.requestId }),
    },
    ...(parts.headers !== undefined && { headers: parts.headers }),
  };
}

export function invalid(errors: readonly ProblemError[]): ProblemAnswer {
  const [first] = errors;
  const place = first === undefined || first.path === "" ? "" : `${first.path}: `;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return problem(400, `the request is not valid: ${place}${first?.message ?? ""}${more}`, {
    errors,
  });
}

/** Refuses what is missing or belongs to another customer; nobody can tell which. */
export function notFound(what: string, errors?: readonly ProblemError[]): ProblemAnswer {
  return problem(404, `there is no ${what}`, errors === undefined ? {} : { errors });
}

export function conflict(detail: string): ProblemAnswer {
  return problem(409, detail);
}

export function forbidden(detail: string): ProblemAnswer {
  return problem(403, detail);
}

export function tooMany(detail: string, waitMs: number): ProblemAnswer {
  const headers = { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1_000))) };
  return problem(429, detail, { headers });
}

export function isGood(answer: Answer): boolean {
  return answer.status < 400;
}
