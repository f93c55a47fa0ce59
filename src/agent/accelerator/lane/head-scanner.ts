// Reads the head of a plain request out of the bytes of a connection: what every browser sends for a page or an image. Whatever is not plain is "odd", and node's
// own parser reads it from its first byte.
//
//   request     GET or HEAD, one space, a target that begins with a slash, one space, HTTP/1.1
//   target      at most 2,048 bytes of %x21-7E, none of " # < > \ ^ ` { | }
//   fields      at most 100, each a name of tchar directly before its colon, and a value of SP, HTAB and %x21-7E; no folding
//   Host        exactly one, not empty; no other known field twice
//   Connection  absent, "keep-alive" or "close"
//   length      8 KiB in all
//
// PURGE, BAN and URIBAN are read by the same grammar, for the pipeline alone: node's parser does not know the last two. These two may say Content-Length: 0,
// as some clients do with every request that they know no body for.
//
// Two readers of one head must never disagree. So the grammar is one of what everybody reads alike, and fields that say where a body ends, or that the
// connection becomes another one, are odd whatever they say.

import type { Field } from "../../../core/http/http-fields.ts";
import type { RequestHead } from "../../../core/serving/request-check.ts";

/** A plain request of any protocol. */
export type PlainRequest = RequestHead & {
  readonly method: "GET" | "HEAD";
  readonly said: PlainFields;
};

export type PlainHead = PlainRequest & {
  readonly kind: "plain";
  /** The place behind the head. */
  readonly end: number;
};

/** A purge request without a body; the pipeline answers it. */
export type PurgeHead = RequestHead & {
  readonly kind: "purge";
  readonly method: PurgeMethod;
  readonly said: PlainFields;
  readonly end: number;
};
type PurgeMethod = "PURGE" | "BAN" | "URIBAN";

export type Scan =
  | PlainHead
  | PurgeHead
  /** What is there may become a plain head. */
  | More
  | Odd;

export const plainTotalMax = 8 * 1024;
const targetBytesMax = 2_048;
const fieldsMax = 100;

const requestLine = /(GET|HEAD|PURGE|BAN|URIBAN) (\/[!$-;=?-[\]_a-z~%]*) HTTP\/1\.1\r\n/y;
const fieldLine = /([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[!-~]+(?:[ \t]+[!-~]+)*)?)[ \t]*\r\n/y;
/** A line whose end has not come. */
const fieldBegun = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]*|[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]*\r?)$/;
const emptyLine = "\r\n";
const slash = 0x2f;
const getBytes = Buffer.from("GET ");
const versionBytes = Buffer.from(" HTTP/1.1\r\n");
/** By byte: 1 for those that may stand in a target. */
const isOfTarget = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[!$-;=?-[\]_a-z~%]/.test(String.fromCharCode(byte)) ? 1 : 0,
);

/** Known fields that make a head odd: framing, and what is said from one hop to the next. */
const oddNames: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const pipelineNames: ReadonlySet<string> = new Set([
  "authorization",
  "cache-control",
  "cdn-loop",
  "if-match",
  "if-range",
  "if-unmodified-since",
  "max-forwards",
  "pragma",
  "range",
  "via",
]);
/** Known fields that may be there once, each with its bit. */
const singleNames: ReadonlyMap<string, number> = new Map(
  [
    ...pipelineNames,
    "accept-encoding",
    "connection",
    "cookie",
    "forwarded",
    "host",
    "if-modified-since",
    "if-none-match",
    "user-agent",
    "x-forwarded-for",
    "x-forwarded-proto",
  ].map((name, at) => [name, 1 << at]),
);

type More = { readonly kind: "more" };
type Odd = { readonly kind: "odd" };

const more: More = { kind: "more" };
export const odd: Odd = { kind: "odd" };

/**
 * Scans the bytes from `from` on. What is "more" is scanned again from there when more has come. `known` are the fields of an earlier head: browsers send
 * the same with each request of a connection, and then they are not read again.
 */
export function scanHead(bytes: Buffer, from: number, known?: PlainFields): Scan {
  return scanKnown(bytes, from, known) ?? scanText(bytes, from, known);
}

/** Where the fields are once more byte for byte those of the head before, only the request line is read. Undefined: it has to be read as text. */
function scanKnown(
  bytes: Buffer,
  from: number,
  known: PlainFields | undefined,
): PlainHead | undefined {
  if (known?.bytes === undefined) return undefined;
  if (!startsAt(bytes, getBytes, from)) return undefined;
  const targetAt = from + getBytes.length;
  if (bytes[targetAt] !== slash) return undefined;
  let at = targetAt + 1;
  while (isOfTarget[bytes[at] ?? 0] === 1) at++;
  if (at - targetAt > targetBytesMax || !startsAt(bytes, versionBytes, at)) return undefined;
  const fieldsAt = at + versionBytes.length;
  const end = fieldsAt + known.bytes.length;
  if (end > bytes.length || end - from > plainTotalMax) return undefined;
  if (known.bytes.compare(bytes, fieldsAt, end) !== 0) return undefined;
  const url = bytes.toString("latin1", targetAt, at);
  return new ScannedHead("GET", url, known, end);
}

function startsAt(bytes: Uint8Array, begin: Uint8Array, from: number): boolean {
  for (let no = 0; no < begin.length; no++) if (bytes[from + no] !== begin[no]) return false;
  return true;
}

function scanText(bytes: Buffer, from: number, known: PlainFields | undefined): Scan {
  const text = bytes.toString("latin1", from, Math.min(bytes.length, from + plainTotalMax));
  requestLine.lastIndex = 0;
  const request = requestLine.exec(text);
  if (request === null) return mayBecomeRequest(text) ? more : odd;
  const [line, method, target = ""] = request;
  if (target.length > targetBytesMax) return odd;
  if (method === "PURGE" || method === "BAN" || method === "URIBAN")
    return scanPurge(text, from, method, target, line.length);
  const isKnown = known !== undefined && text.startsWith(known.text, line.length);
  const said = isKnown ? known : readFields(text, line.length);
  if (!(said instanceof PlainFields)) return said;
  // Fields that differ each time, as a proxy's do, are never compared as bytes.
  if (isKnown) said.bytes ??= lastingBytes(said.text);
  const end = from + line.length + said.text.length;
  return new ScannedHead(method === "GET" ? "GET" : "HEAD", target, said, end);
}

/** The fields are always read anew: one that may stand here makes other heads odd. */
function scanPurge(
  text: string,
  from: number,
  method: PurgeMethod,
  url: string,
  fieldsAt: number,
): PurgeHead | More | Odd {
  const said = readFields(text, fieldsAt, method !== "PURGE");
  if (!(said instanceof PlainFields)) return said;
  const { fields } = said;
  const end = from + fieldsAt + said.text.length;
  return { kind: "purge", method, url, httpVersion: "1.1", hasBody: false, fields, said, end };
}

/** No part of a larger memory: it is kept. */
function lastingBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(text.length);
  bytes.write(text, "latin1");
  return bytes;
}

class ScannedHead implements PlainHead {
  readonly kind = "plain";
  readonly method: "GET" | "HEAD";
  readonly url: string;
  readonly httpVersion = "1.1";
  readonly hasBody = false;
  readonly fields: readonly Field[];
  readonly said: PlainFields;
  readonly end: number;

  constructor(method: "GET" | "HEAD", url: string, said: PlainFields, end: number) {
    this.method = method;
    this.url = url;
    this.fields = said.fields;
    this.said = said;
    this.end = end;
  }
}

/** Reads the fields that begin at `from`. */
function readFields(text: string, from: number, maySayNoBody = false): PlainFields | More | Odd {
  const said = new PlainFields(maySayNoBody);
  let at = from;
  for (;;) {
    if (text.startsWith(emptyLine, at)) break;
    fieldLine.lastIndex = at;
    const field = fieldLine.exec(text);
    if (field === null) return isCut(text, at) ? more : odd;
    if (!said.take(field[1] ?? "", field[2] ?? "")) return odd;
    at = fieldLine.lastIndex;
  }
  if (said.host === "") return odd;
  said.text = text.slice(from, at + emptyLine.length);
  return said;
}

/** The fields of a plain head. */
export class PlainFields {
  readonly fields: Field[] = [];
  /** Their lines and the empty one, as sent. */
  text = "";
  /** The same, once they have come twice. */
  bytes: Buffer | undefined;
  host = "";
  userAgent: string | undefined;
  acceptEncoding: string | undefined;
  /** There is a condition of a cache. */
  isConditional = false;
  /** The visitor ends the connection with the answer. */
  isLast = false;
  /** There is a field that only the pipeline answers to. */
  needsPipeline = false;
  /** What whoever answers has found of these fields on this connection. */
  found: unknown;
  /** Known fields, of which each may be there once: one bit a name. */
  #seen = 0;
  /** Whether `Content-Length: 0` may still come. */
  #maySayNoBody: boolean;

  constructor(maySayNoBody = false) {
    this.#maySayNoBody = maySayNoBody;
  }

  /** False: the head is odd. */
  take(name: string, value: string): boolean {
    if (this.fields.length >= fieldsMax) return false;
    this.fields.push([name, value]);
    const lower = name.toLowerCase();
    if (oddNames.has(lower)) return this.#takesOdd(lower, value);
    const bit = singleNames.get(lower);
    if (bit === undefined) return true;
    if ((this.#seen & bit) !== 0) return false;
    this.#seen |= bit;
    switch (lower) {
      case "host":
        this.host = value;
        return true;
      case "user-agent":
        this.userAgent = value;
        return true;
      case "accept-encoding":
        this.acceptEncoding = value;
        return true;
      case "if-none-match":
      case "if-modified-since":
        this.isConditional = true;
        return true;
      case "connection":
        return this.#takeConnection(value.toLowerCase());
      default:
        this.needsPipeline ||= pipelineNames.has(lower);
        return true;
    }
  }

  #takesOdd(name: string, value: string): boolean {
    const isTaken = this.#maySayNoBody && name === "content-length" && value === "0";
    this.#maySayNoBody = false;
    return isTaken;
  }

  #takeConnection(value: string): boolean {
    this.isLast = value === "close";
    return this.isLast || value === "keep-alive";
  }
}

/** Whether the rest of the text may be the beginning of a field, or of the empty line. */
function isCut(text: string, at: number): boolean {
  if (text.length >= plainTotalMax) return false;
  const rest = text.slice(at);
  return rest === "\r" || fieldBegun.test(rest);
}

const methods = ["GET ", "HEAD ", "PURGE ", "BAN ", "URIBAN "];
const targetBegun = /^\/[!$-;=?-[\]_a-z~%]*$/;

export function isPlainTarget(target: string): boolean {
  return target.length <= targetBytesMax && targetBegun.test(target);
}

const versionLine = "HTTP/1.1\r\n";

/** Whether the text may be the beginning of a request line. */
function mayBecomeRequest(text: string): boolean {
  if (text.length >= plainTotalMax) return false;
  const method = methods.find((one) => text.startsWith(one) || one.startsWith(text));
  if (method === undefined) return false;
  if (text.length <= method.length) return true;
  const rest = text.slice(method.length);
  const space = rest.indexOf(" ");
  const target = space < 0 ? rest : rest.slice(0, space);
  if (!targetBegun.test(target) || target.length > targetBytesMax) return false;
  return space < 0 || versionLine.startsWith(rest.slice(space + 1));
}
