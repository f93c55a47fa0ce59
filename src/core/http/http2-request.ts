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
  let [method, path, authority] = ["", "", ""];
  let cookies: string | undefined;
  const fields: Field[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = "", value = ""] = [raw[i], raw[i + 1]];
    if (name === "cookie") cookies = cookies === undefined ? value : `${cookies}; ${value}`;
    else if (!name.startsWith(":")) fields.push([name, value]);
    else if (name === ":method") method = value;
    else if (name === ":path") path = value;
    else if (name === ":authority") authority = value;
  }
  // The cookies become one field again: HTTP/1.1 knows no other way to say it (RFC 9113 §8.2.3).
  if (cookies !== undefined) fields.push(["cookie", cookies]);
  return {
    method,
    // HTTP/2 has no absolute form, which would name an authority of its own.
    target: path.startsWith("/") || path === "*" ? path : "",
    fields: withHost(fields, authority),
  };
}

/**
 * Turns a request for a WebSocket over HTTP/2 (extended CONNECT, RFC 8441 §5) into the header of a GET that
 * asks for it as HTTP/1.1 does, under the key that `makeKey` makes. Undefined: it is another request.
 */
export function webSocketHead(
  raw: readonly string[],
  makeKey: () => string,
): readonly string[] | undefined {
  if (!raw.includes(":protocol")) return undefined;
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
  const asked = ["connection", "Upgrade", "upgrade", "websocket", "sec-websocket-key", makeKey()];
  return [":method", "GET", ...head, ...asked];
}

/** Returns the size of an unpacked header as RFC 9113 §6.5.2 counts it, but without its 32 bytes a field. */
export function headBytes(fields: readonly Field[]): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

function withHost(fields: readonly Field[], authority: string): readonly Field[] {
  if (authority === "") return fields;
  const isSame = ([name, value]: Field): boolean =>
    name === "host" && value.trim().toLowerCase() === authority.toLowerCase();
  return [["host", authority], ...fields.filter((field) => !isSame(field))];
}
