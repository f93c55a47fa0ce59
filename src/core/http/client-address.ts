// Finds the visitor's address: the peer's, unless the peer is a trusted proxy; then the rightmost address
// that is not one, in the one field that the proxies are known to write. A visitor could forge the other
// field.
//
// The peer is whoever connected, or whom a PROXY header names.

import { AddressReader } from "../addresses/address-reader.ts";
import type { AddressTable } from "../addresses/address-table.ts";
import { addressText } from "../addresses/address-text.ts";
import { fieldValue, type Field } from "./http-fields.ts";
import type { IpFamily } from "../addresses/ip.ts";
import { buildAddressTable } from "../addresses/range-set.ts";

export const forwardedHeaders = ["x-forwarded-for", "forwarded"] as const;
export type ForwardedHeader = (typeof forwardedHeaders)[number];

export type Scheme = "http" | "https";

export type ClientAddress = {
  /** The address in its canonical spelling. */
  readonly text: string;
  /** Whether the peer's forwarding headers are believed. */
  readonly isProxied: boolean;
  /** The value of X-Forwarded-For for the next server. */
  readonly forwardedFor: string;
  /** The scheme of the visitor's request. */
  readonly scheme: Scheme;
};

/** The most proxies that a request comes through; what lies before was written by nobody we trust. */
const hopsMax = 64;

/**
 * Synchronous, and cheap enough for every request of a proxy: a hop is read only while all hops behind it are
 * trusted.
 */
export class ClientAddresses {
  readonly #trusted: AddressTable;
  readonly #header: ForwardedHeader;
  readonly #reader = new AddressReader();

  /** `trustedProxies` are addresses and CIDR ranges that were validated where they came in. */
  constructor(trustedProxies: readonly string[], header: ForwardedHeader) {
    this.#trusted = buildAddressTable(trustedProxies.map((range) => ({ bot: "proxy", range })));
    this.#header = header;
  }

  /**
   * Returns the address of a peer; called once per connection. Takes a socket's remote address as Node spells
   * it (a zone is dropped), or what a PROXY header names. Returns undefined for text that is no address (a
   * closed socket).
   */
  ofPeer(address: string | undefined, scheme: Scheme = "http"): ClientAddress | undefined {
    const bare = address?.replace(/%.*$/, "") ?? "";
    const family = this.#reader.read(bare);
    if (family === 0) return undefined;
    const isProxied = this.#trusted.ownerOf(family, this.#reader.words) !== 0;
    const text = this.#canonical(bare, family);
    return { text, isProxied, forwardedFor: text, scheme };
  }

  /**
   * Returns the address of a request's visitor: the peer itself unless it is a trusted proxy. The walk ends
   * at text that is no address, and at the end of a list of trusted proxies; the last known hop then counts.
   */
  ofRequest(peer: ClientAddress, fields: readonly Field[]): ClientAddress {
    if (!peer.isProxied) return peer;
    const said = fieldValue(fields, this.#header) ?? "";
    if (this.#header === "forwarded") {
      const { text, scheme } = this.#walk(peer, forwardedHops(said, hopsMax));
      const forwardedFor = text === peer.text ? text : `${text}, ${peer.text}`;
      return { text, isProxied: true, forwardedFor, scheme };
    }
    const { text } = this.#walk(peer, listedHops(said));
    const scheme = schemeOf(fieldValue(fields, "x-forwarded-proto")) ?? peer.scheme;
    const forwardedFor = said === "" ? peer.text : `${said}, ${peer.text}`;
    return { text, isProxied: true, forwardedFor, scheme };
  }

  #walk(peer: ClientAddress, hops: Iterable<Hop>): Pick<ClientAddress, "text" | "scheme"> {
    let { text, scheme } = peer;
    for (const hop of hops) {
      scheme = schemeOf(hop.proto) ?? scheme;
      const family = hop.address === undefined ? 0 : this.#reader.read(hop.address);
      if (hop.address === undefined || family === 0) break;
      text = this.#canonical(hop.address, family);
      if (this.#trusted.ownerOf(family, this.#reader.words) === 0) break;
    }
    return { text, scheme };
  }

  /** Returns the one spelling of the text that was read last. */
  #canonical(text: string, family: IpFamily): string {
    // A dotted quad has one spelling only.
    return text.includes(":") ? addressText(family, this.#reader.words) : text;
  }
}

/** Yields the members of X-Forwarded-For, nearest hop first. */
function* listedHops(list: string): Generator<Hop> {
  let end = list.length;
  for (let hops = 0; end >= 0 && hops < hopsMax; hops++) {
    const comma = end === 0 ? -1 : list.lastIndexOf(",", end - 1);
    yield { address: withoutPort(list.slice(comma + 1, end).trim()), proto: undefined };
    end = comma;
  }
}

/** Removes the port that some proxies write: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function withoutPort(text: string): string {
  const [, six, four] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  return six ?? four ?? text;
}

function schemeOf(said: string | undefined): Scheme | undefined {
  if (said === undefined) return undefined;
  return said.toLowerCase() === "https" ? "https" : "http";
}

// The field `Forwarded` (RFC 7239) as far as it says whose request it is: each element is one hop, with its
// `for` and `proto` parameters.
//
// It is read from the right, where what a trusted proxy appended is well-formed whatever a visitor wrote
// before it. Read from the left, a quote without end would swallow it.

type Hop = {
  /**
   * Not checked to be an address; undefined where the hop names none (`unknown`, an obfuscated identifier).
   */
  readonly address: string | undefined;
  readonly proto: string | undefined;
};

const token = String.raw`[!#$%&'*+.^_\x60|~0-9A-Za-z-]+`;
const quoted = String.raw`"(?:[^"\\]|\\.)*"`;
const pair = String.raw`[ \t]*${token}[ \t]*=[ \t]*(?:${token}|${quoted})[ \t]*`;
const elementForm = new RegExp(`^(?:${pair}|[ \\t]*)(?:;(?:${pair}|[ \\t]*))*$`);
const pairs = new RegExp(`(${token})[ \\t]*=[ \\t]*(${token}|${quoted})`, "g");
/** The most commas within the quotes of one element. */
const elementCommasMax = 8;
const elementCharsMax = 1_024;

/**
 * Yields the nearest hop first, the order in which hops are to be trusted. At most `elementsMax` elements are
 * read, each when it is asked for. A malformed element is the last, for nobody can tell what lies before it.
 */
export function* forwardedHops(value: string, elementsMax: number): Generator<Hop> {
  let end = value.length;
  for (let elements = 0; end >= 0 && elements < elementsMax; elements++) {
    const start = elementStart(value, end);
    if (start === undefined) {
      yield { address: undefined, proto: undefined };
      return;
    }
    const element = value.slice(start, end);
    if (element.trim() !== "") yield hopOf(element);
    end = start - 1;
  }
}

/** Returns where the last well-formed element before `end` begins: behind a comma, or at the start. */
function elementStart(value: string, end: number): number | undefined {
  let before = end;
  for (let commas = 0; commas <= elementCommasMax; commas++) {
    const comma = before === 0 ? -1 : value.lastIndexOf(",", before - 1);
    if (end - comma > elementCharsMax) return undefined;
    if (elementForm.test(value.slice(comma + 1, end))) return comma + 1;
    if (comma < 0) return undefined;
    before = comma;
  }
  return undefined;
}

function hopOf(element: string): Hop {
  const said = new Map<string, string | undefined>();
  // Each match takes a quoted string whole, so nothing within one counts.
  for (const [, name = "", value = ""] of element.matchAll(pairs)) {
    const parameter = name.toLowerCase();
    said.set(parameter, said.has(parameter) ? undefined : unquoted(value)); // §4: a parameter stands at most once in an element.
  }
  const node = said.get("for");
  return { address: node === undefined ? undefined : addressOf(node), proto: said.get("proto") };
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;
}

/**
 * Reads a node (§6): an IPv4 address, or an IPv6 address in brackets, each with or without a port; ports may
 * be obfuscated (`_` and a name).
 */
function addressOf(node: string): string | undefined {
  const [, six, four] =
    /^(?:\[([^\]]*:[^\]]*)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(node) ?? [];
  return six ?? four;
}
