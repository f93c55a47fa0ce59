// What makes a request one that is not looked at further: framing and addressing that two readers could understand differently.

import { fieldValues } from "../../../core/http/http-fields.ts";
import { headBytes } from "../../../core/http/http2-request.ts";
import type { Exchange } from "./exchange.ts";
import { isLoop } from "../origin/origin-request.ts";

export type Refusal = { readonly status: number; readonly text: string };

/** More fields than this serve only to burden whoever reads them; browsers send about 20. */
const fieldsMax = 200;
/** Of a header of HTTP/2, unpacked; as much as the parser of HTTP/1.1 takes (listener.ts). */
const headBytesMax = 32 * 1024;

/** Beyond what the strict parser refused. Undefined: nothing is wrong. */
export function refusalOf({ request, fields, method }: Exchange): Refusal | undefined {
  const { httpVersion } = request;
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
  const codings = fieldValues(fields, "transfer-encoding");
  if (codings.length > 0) {
    // RFC 9112 §6.1.
    if (httpVersion === "1.0") return { status: 400, text: "HTTP/1.0 has no Transfer-Encoding." };
    if (codings.length > 1 || codings[0]?.toLowerCase() !== "chunked")
      return { status: 501, text: "The only transfer coding of a request may be chunked." };
  }
  // Of HTTP/1.1 it is answered by the listener.
  if (method === "CONNECT") return { status: 405, text: "CONNECT is not answered here." };
  // A gateway that reflects a request shows the cookies that scripts must not see.
  if (method === "TRACE") return { status: 405, text: "TRACE is not answered here." };
  if (isLoop(fields)) return { status: 508, text: "The request runs in a circle." };
  return undefined;
}

/** A protocol that would take over the connection and that we do not speak. `h2c` may be declined in silence (RFC 9110 §7.8). */
export function asksForUpgrade({ fields }: Exchange): boolean {
  const protocols = fieldValues(fields, "upgrade").join(",").toLowerCase();
  const connection = fieldValues(fields, "connection").join(",").toLowerCase();
  return /\bupgrade\b/.test(connection) && /\bwebsocket\b/.test(protocols);
}
