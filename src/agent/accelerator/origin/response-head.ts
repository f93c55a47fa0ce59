// The head of an origin's answer over HTTP/1.1: bytes to status and fields, or a reason why it is not believed. Strict: where two readers could differ about
// where an answer ends (RFC 9112 §6.3, §11.1), the connection is closed and the visitor is told that the origin is broken.

import { listMembers, type Field } from "../../../core/http/http-fields.ts";

/** How the end of a body is known. */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked" }
  /** By the end of the connection. */
  | { readonly kind: "close" };

export type ResponseHead = {
  readonly kind: "head";
  readonly status: number;
  readonly fields: readonly Field[];
  readonly framing: Framing;
  /** The origin leaves the connection open after this answer. */
  readonly keepsOpen: boolean;
  /** The milliseconds for which an idle connection stays open, where the origin says so. */
  readonly keepAliveMs: number | undefined;
  /** The place behind the head. */
  readonly end: number;
};

export type HeadScan =
  | ResponseHead
  | { readonly kind: "more" }
  | { readonly kind: "fault"; readonly reason: string };

/**
 * The bytes that names and values together may have: 5,000 tags of a page and the rest, where Node and undici
 * would allow 16 KiB.
 */
export const fieldBytesMax = 131_072;
/** With the three or four bytes around the shortest of fields. */
const headBytesMax = 4 * fieldBytesMax;
const headEnd = Buffer.from("\r\n\r\n", "latin1");
const more = { kind: "more" } as const;
const lineFeed = 10;
const carriageReturn = 13;

/** `isForHead`: the request was HEAD, whose answer has no body. */
export function scanResponseHead(bytes: Buffer, at: number, isForHead: boolean): HeadScan {
  const end = bytes.indexOf(headEnd, at);
  if (end < 0) return beginning(bytes, at);
  if (end - at > headBytesMax) return fault("the head is too large");
  const text = bytes.toString("latin1", at, end + 2);
  const lines = readLines(text);
  if (lines.kind === "fault") return lines;
  return headOf(lines, isForHead, end + 4);
}

/** What has come of a head so far is judged at once: nobody waits for the rest of what can be none. */
function beginning(bytes: Buffer, at: number): HeadScan {
  if (bytes.length - at > headBytesMax) return fault("the head is too large");
  const known = "HTTP/1.";
  const first = bytes.toString("latin1", at, at + known.length);
  if (!known.startsWith(first)) return fault("it does not speak HTTP/1.1");
  const last = bytes.lastIndexOf(lineFeed);
  if (last < at) return more;
  const lines = readLines(bytes.toString("latin1", at, last + 1));
  return lines.kind === "fault" ? lines : more;
}

type Lines = {
  readonly kind: "lines";
  readonly minor: number;
  readonly status: number;
  readonly fields: readonly Field[];
};
type Fault = { readonly kind: "fault"; readonly reason: string };
const fault = (reason: string): Fault => ({ kind: "fault", reason });

const controls = /[^\t\r\n\x20-\x7e\x80-\xff]/;
const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: .*)?$/s;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Reads whole lines, each with its line end. */
function readLines(text: string): Lines | Fault {
  if (controls.test(text)) return fault("the head has a control character");
  const first = lineEnd(text, 0);
  const line = first === undefined ? null : statusLine.exec(text.slice(0, first));
  if (first === undefined || line === null) return fault("its status line is malformed");
  const fields: Field[] = [];
  let bytes = 0;
  for (let from = first + 2; from < text.length;) {
    const end = lineEnd(text, from);
    const field = end === undefined ? undefined : readField(text.slice(from, end));
    if (end === undefined || field === undefined) return fault("a field is malformed");
    bytes += field[0].length + field[1].length;
    if (bytes >= fieldBytesMax) return fault("the head is too large");
    fields.push(field);
    from = end + 2;
  }
  return { kind: "lines", minor: Number(line[1]), status: Number(line[2]), fields };
}

/** Finds the CR LF that ends a line; undefined where a CR or LF stands alone. */
function lineEnd(text: string, from: number): number | undefined {
  const end = text.indexOf("\n", from) - 1;
  return end >= from && text.charCodeAt(end) === carriageReturn && text.indexOf("\r", from) === end
    ? end
    : undefined;
}

/** Names that were found to be tokens: origins say the same ones again and again. */
const knownNames = new Set<string>();
const knownNamesMax = 1_000;

/** Reads a line without its end; undefined where it is none, or continues the one before (obs-fold). */
export function readField(line: string): Field | undefined {
  const colon = line.indexOf(":");
  if (colon <= 0) return undefined;
  const name = line.slice(0, colon);
  if (!knownNames.has(name)) {
    if (!token.test(name)) return undefined;
    if (knownNames.size < knownNamesMax) knownNames.add(name);
  }
  return [name, trimmed(line, colon + 1)];
}

/** Without the blanks and tabs around it; what else counts as white space elsewhere is part of a value. */
function trimmed(line: string, at: number): string {
  let [from, to] = [at, line.length];
  while (from < to && isBlank(line.charCodeAt(from))) from++;
  while (to > from && isBlank(line.charCodeAt(to - 1))) to--;
  return line.slice(from, to);
}

const isBlank = (code: number): boolean => code === 32 || code === 9;

function headOf({ minor, status, fields }: Lines, isForHead: boolean, end: number): HeadScan {
  let length: string | undefined;
  let coding: string | undefined;
  let connection = "";
  let keepAlive: string | undefined;
  for (const [name, value] of fields) {
    const size = name.length;
    if (size !== 14 && size !== 17 && size !== 10) continue;
    switch (name.toLowerCase()) {
      case "content-length":
        if (length !== undefined) return fault("it states its length twice");
        length = value;
        break;
      case "transfer-encoding":
        coding = coding === undefined ? value : `${coding}, ${value}`;
        break;
      case "connection":
        connection += `,${value}`;
        break;
      case "keep-alive":
        keepAlive = value;
        break;
      default:
    }
  }
  if (length !== undefined && coding !== undefined)
    return fault("it states both a length and a transfer coding");
  if (coding !== undefined && minor === 0) return fault("it has a transfer coding in HTTP/1.0");
  const bytes = length === undefined ? undefined : lengthOf(length);
  if (length !== undefined && bytes === undefined)
    return fault("the length that it states is none");
  const options = connection === "" ? [] : listMembers(connection.toLowerCase());
  const stays = minor === 1 ? !options.includes("close") : options.includes("keep-alive");
  const framing = framingOf(status, isForHead, bytes, coding);
  return {
    kind: "head",
    status,
    fields,
    framing,
    keepsOpen: stays && !options.includes("close") && framing.kind !== "close",
    keepAliveMs: keepAlive === undefined ? undefined : keepAliveOf(keepAlive),
    end,
  };
}

/** By RFC 9112 §6.3. */
function framingOf(
  status: number,
  isForHead: boolean,
  bytes: number | undefined,
  coding: string | undefined,
): Framing {
  if (isForHead || status < 200 || status === 204 || status === 304) return { kind: "none" };
  // Another coding is refused by whoever asked; its bytes are nobody's.
  if (coding !== undefined)
    return coding.toLowerCase() === "chunked" ? { kind: "chunked" } : { kind: "close" };
  return bytes === undefined ? { kind: "close" } : { kind: "length", bytes };
}

function lengthOf(text: string): number | undefined {
  if (!/^\d{1,16}$/.test(text)) return undefined;
  const bytes = Number(text);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

function keepAliveOf(text: string): number | undefined {
  const seconds = /(?:^|[\s,;])timeout\s*=\s*"?(\d{1,6})/i.exec(text)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
