// Checks the head of a request before anything else is known about it, and refuses what two readers could
// understand differently.

import { fieldValue, fieldValues, listMembers, type Field } from "../http/http-fields.ts";
import { headBytes } from "../http/http2-request.ts";

export type RequestHead = {
  readonly method: string;
  /** The target as sent; "" if there is none. */
  readonly url: string;
  /** `1.0`, `1.1` or `2`. */
  readonly httpVersion: string;
  readonly fields: readonly Field[];
  readonly hasBody: boolean;
};

type Fault = { readonly status: number; readonly text: string };

/** The most fields of a request: browsers send about 20, and more only burden whoever reads them. */
const fieldsMax = 200;
/**
 * The most bytes of an unpacked header of HTTP/2; the parser of HTTP/1.1 takes as much (doors/listener.ts).
 */
const headBytesMax = 32 * 1024;
/** A request that has come by so often runs in a loop. */
const loopsMax = 8;

/** This agent's name in `Via` (RFC 9110 §7.6.3). */
export const pseudonym = "accel-agent";

/** Returns what is wrong with a head beyond what the strict parser refuses, or undefined if nothing is. */
export function headFault({ httpVersion, fields, method, url }: RequestHead): Fault | undefined {
  const isHttp2 = httpVersion === "2";
  if (httpVersion !== "1.1" && !isHttp2 && httpVersion !== "1.0")
    return { status: 505, text: "This server speaks HTTP/2, HTTP/1.1 and HTTP/1.0." };
  if (fields.length > fieldsMax)
    return { status: 431, text: `The request has more than ${fieldsMax} header fields.` };
  if (isHttp2 && headBytes(fields) > headBytesMax)
    return { status: 431, text: "The header of the request is too large." };
  const hosts = fieldValues(fields, "host").length;
  // RFC 9112 §3.2.
  if (hosts > 1) return { status: 400, text: "The request has more than one Host field." };
  if (hosts === 0 && httpVersion !== "1.0")
    return { status: 400, text: "The request names no host." };
  // RFC 9112 §3.2.1: a client keeps the fragment for itself.
  if (url.includes("#")) return { status: 400, text: "The request target has a fragment." };
  if (!namesHost(fieldValue(fields, "host")) || !namesHost(absoluteForm.exec(url)?.[1]))
    return { status: 400, text: "The Host field names no host." };
  const codings = fieldValues(fields, "transfer-encoding");
  if (codings.length > 0) {
    // RFC 9112 §6.1.
    if (httpVersion === "1.0") return { status: 400, text: "HTTP/1.0 has no Transfer-Encoding." };
    if (codings.length > 1 || codings[0]?.toLowerCase() !== "chunked")
      return { status: 501, text: "The only transfer coding of a request may be chunked." };
  }
  // For HTTP/1.1 the listener answers it.
  if (method === "CONNECT") return { status: 405, text: "CONNECT is not answered here." };
  // A gateway that reflects a request would show scripts the cookies that they must not see.
  if (method === "TRACE") return { status: 405, text: "TRACE is not answered here." };
  if (isLoop(fields)) return { status: 508, text: "The request runs in a loop." };
  return undefined;
}

const absoluteForm = /^https?:\/\/([^/?#]*)/i;
const authorityForm =
  /^(?:\[[0-9a-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+)(?::(?<port>\d{0,5}))?$/i;
const portMax = 65_535;

/**
 * Whether an authority has the form of RFC 3986 §3.2 without user information, and a host, without which http
 * has no origin (RFC 9110 §4.2.1). So has one that is absent: HTTP/1.0 need not say any.
 */
function namesHost(authority: string | undefined): boolean {
  if (authority === undefined) return true;
  const found = authorityForm.exec(authority);
  return found !== null && Number(found.groups?.["port"] ?? 0) <= portMax;
}

function isLoop(fields: readonly Field[]): boolean {
  const via = fieldValue(fields, "via");
  if (via === undefined) return false;
  const hops = listMembers(via).filter((hop) => hop.split(/\s+/)[1] === pseudonym);
  return hops.length >= loopsMax;
}

/**
 * Returns whether a request asks for a protocol that takes over the connection and that an origin may be asked
 * for. Another HTTP or TLS is declined in silence (RFC 9110 §7.8): requests of such a connection would pass
 * unjudged. So is an upgrade of a request with a body, or of HTTP/1.0. One of HTTP/2 is an extended CONNECT:
 * its framing allows no such field.
 */
export function asksForUpgrade({ httpVersion, fields, hasBody }: UpgradeHead): boolean {
  const protocols = fieldValue(fields, "upgrade");
  if (protocols === undefined || hasBody || httpVersion === "1.0") return false;
  const connection = listMembers((fieldValue(fields, "connection") ?? "").toLowerCase());
  const asked = listMembers(protocols);
  return connection.includes("upgrade") && asked.length > 0 && !asked.some(isUnjudged);
}

type UpgradeHead = Pick<RequestHead, "httpVersion" | "fields" | "hasBody">;

const isUnjudged = (protocol: string): boolean => /^(?:h2c?|http|tls)(?:\/|$)/i.test(protocol);

/** Returns whether a request asks for a WebSocket (RFC 6455 §4.2.1), and for nothing else. */
export function asksForWebSocket(fields: readonly Field[]): boolean {
  return fieldValue(fields, "upgrade")?.toLowerCase() === "websocket";
}
