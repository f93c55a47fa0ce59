// A request of HTTP/2 in the terms of HTTP/1.1 (RFC 9113 §8.3): what the pseudo-header fields say becomes method, target and Host, and the pieces of a
// cookie become one field. What framing forbids (connection fields, malformed pseudo-headers) was refused before.

import type { Field } from "./http-fields.ts";

export type Http2Request = {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly Field[];
};

/**
 * `raw` is Node's flat form, with names in lower case. If `:authority` and Host name different hosts, both
 * are among the fields; whoever checks the request refuses that, because two readers could understand it
 * differently.
 */
export function readHttp2Request(raw: readonly string[]): Http2Request {
  const pseudo = new Map<string, string>();
  const fields: Field[] = [];
  const cookies: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? "";
    const value = raw[i + 1] ?? "";
    if (name.startsWith(":")) pseudo.set(name, value);
    else if (name === "cookie") cookies.push(value);
    else fields.push([name, value]);
  }
  // The cookies become one field again: HTTP/1.1 knows no other way to say it (RFC 9113 §8.2.3).
  if (cookies.length > 0) fields.push(["cookie", cookies.join("; ")]);
  const path = pseudo.get(":path") ?? "";
  return {
    method: pseudo.get(":method") ?? "",
    // HTTP/2 has no absolute form, which would name an authority of its own.
    target: path.startsWith("/") || path === "*" ? path : "",
    fields: withHost(fields, pseudo.get(":authority")),
  };
}

/**
 * Turns a request for a WebSocket over HTTP/2 (extended CONNECT, RFC 8441 §5) into the header of a GET that
 * asks for it as HTTP/1.1 does, under the key given. Undefined: it is another request.
 */
export function webSocketHead(raw: readonly string[], key: string): readonly string[] | undefined {
  const head: string[] = [];
  let [isConnect, isWebSocket] = [false, false];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? "";
    const value = raw[i + 1] ?? "";
    if (name === ":method") isConnect = value === "CONNECT";
    else if (name === ":protocol") isWebSocket = value.toLowerCase() === "websocket";
    else if (name !== "sec-websocket-key") head.push(name, value);
  }
  if (!isConnect || !isWebSocket) return undefined;
  const asked = ["connection", "Upgrade", "upgrade", "websocket", "sec-websocket-key", key];
  return [":method", "GET", ...head, ...asked];
}

/** Returns the size of an unpacked header as RFC 9113 §6.5.2 counts it, but without its 32 bytes a field. */
export function headBytes(fields: readonly Field[]): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

function withHost(fields: readonly Field[], authority: string | undefined): readonly Field[] {
  if (authority === undefined || authority === "") return fields;
  const isSame = ([name, value]: Field): boolean =>
    name === "host" && value.trim().toLowerCase() === authority.toLowerCase();
  return [["host", authority], ...fields.filter((field) => !isSame(field))];
}
