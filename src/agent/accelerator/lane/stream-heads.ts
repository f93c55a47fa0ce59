// Reads the heads of plain requests of HTTP/2, by the grammar of head-scanner.ts: whoever answers in one step knows one kind of head. What is not plain is left to
// the pipeline.
//
// Framing and connections are not spoken of in such a head; a field that does so is odd nevertheless. `te: trailers`, which some browsers always send, says
// nothing that concerns an answer without trailers.

import { isPlainTarget, PlainFields, plainTotalMax, type PlainRequest } from "./head-scanner.ts";

const namePattern = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const valuePattern = /^(?:[!-~]+(?:[ \t]+[!-~]+)*)?$/;
/** Colon, space, line end. */
const fieldSignsBytes = 4;
/** The largest head whose fields are remembered. */
const knownBytesMax = 2 * 1024;

type Known = { readonly raw: readonly string[]; readonly said: PlainFields };

/** The heads of one connection. */
export class StreamHeads {
  /** Browsers send the same fields with each request of a connection: then they are not read again. */
  #known: Known | undefined;

  /** `raw` is Node's flat form, with names in lower case. Undefined: the head is not plain. */
  read(raw: readonly string[]): PlainRequest | undefined {
    const method = pseudo(raw, ":method");
    const url = pseudo(raw, ":path");
    if ((method !== "GET" && method !== "HEAD") || !isPlainTarget(url)) return undefined;
    const known = this.#known;
    const said =
      known !== undefined && saysTheSame(raw, known.raw) ? known.said : this.#readFields(raw);
    if (said === undefined) return undefined;
    return { method, url, httpVersion: "2", hasBody: false, fields: said.fields, said };
  }

  #readFields(raw: readonly string[]): PlainFields | undefined {
    const bytes = bytesOf(raw);
    if (bytes > plainTotalMax) return undefined;
    const said = readFields(raw);
    this.#known = said !== undefined && bytes <= knownBytesMax ? { raw, said } : undefined;
    return said;
  }
}

/** Reads the fields in the order in which http2-request.ts has them. */
function readFields(raw: readonly string[]): PlainFields | undefined {
  const said = new PlainFields();
  const authority = pseudo(raw, ":authority");
  let cookies: string | undefined;
  if (authority !== "" && !take(said, "host", authority)) return undefined;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    if (name.startsWith(":")) {
      if (!isKnownPseudo(name, value)) return undefined;
    } else if (name === "cookie") cookies = cookies === undefined ? value : `${cookies}; ${value}`;
    else if (name === "host" && isSameHost(value, authority)) continue;
    else if (name === "te" && value === "trailers") said.fields.push([name, value]);
    else if (name === "connection" || !take(said, name, value)) return undefined;
  }
  if (cookies !== undefined && !take(said, "cookie", cookies)) return undefined;
  return said.host === "" ? undefined : said;
}

/** "" is no authority. */
function isSameHost(host: string, authority: string): boolean {
  return authority !== "" && host.toLowerCase() === authority.toLowerCase();
}

function take(said: PlainFields, name: string, value: string): boolean {
  return namePattern.test(name) && valuePattern.test(value) && said.take(name, value);
}

function isKnownPseudo(name: string, value: string): boolean {
  if (name === ":scheme") return value === "https";
  return name === ":method" || name === ":path" || name === ":authority";
}

/** Returns whether two heads differ in method and target at most. */
function saysTheSame(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 2) {
    const name = one[at];
    if (name !== other[at]) return false;
    if (one[at + 1] !== other[at + 1] && name !== ":path" && name !== ":method") return false;
  }
  return true;
}

/** "" where there is none. The parser lets none come twice. */
function pseudo(raw: readonly string[], name: string): string {
  for (let at = 0; at + 1 < raw.length; at += 2) if (raw[at] === name) return raw[at + 1] ?? "";
  return "";
}

/** What the head would be over HTTP/1.1, about. */
function bytesOf(raw: readonly string[]): number {
  let bytes = 0;
  for (let at = 0; at + 1 < raw.length; at += 2)
    bytes += (raw[at]?.length ?? 0) + (raw[at + 1]?.length ?? 0) + fieldSignsBytes;
  return bytes;
}
