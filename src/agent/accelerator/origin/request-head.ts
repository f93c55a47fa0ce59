// The head of a request to an origin as HTTP/1.1 writes it.

import type { Field } from "../../../core/http/http-fields.ts";

/** How an origin learns where the body of a request ends. */
export type RequestFraming =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked" };

export type WrittenHead = { readonly text: string; readonly framing: RequestFraming };

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const unwritable = /[^\t\x20-\x7e\x80-\xff]/;
const noTarget = /[^\x21-\x7e\x80-\xff]/;
/** Names that were found to be tokens: visitors say the same ones again and again. */
const knownNames = new Set<string>();
const knownNamesMax = 1_000;
/** Methods whose body means something: that there is none is said, too (RFC 9110 §8.6). */
const expectingBody: ReadonlySet<string> = new Set(["PATCH", "POST", "PUT"]);

/** Throws a TypeError for what would be read as something else than it is here. `fields` begin with Host. */
export function requestHead(
  method: string,
  path: string,
  fields: readonly Field[],
  hasBody: boolean,
): WrittenHead {
  if (!token.test(method) || noTarget.test(path))
    throw new TypeError("the request line is invalid");
  let text = `${method} ${path} HTTP/1.1\r\n`;
  let length: number | undefined;
  for (const [name, value] of fields) {
    if (!isName(name) || unwritable.test(value))
      throw new TypeError(`the field ${name.slice(0, 100)} is invalid`);
    if (name.length === 14 && name.toLowerCase() === "content-length")
      length = lengthOf(value, length);
    else text += `${name}: ${value}\r\n`;
  }
  const framing = framingOf(method, hasBody, length);
  const said = framing.kind === "length" ? `Content-Length: ${framing.bytes}\r\n` : "";
  const coding = framing.kind === "chunked" ? "Transfer-Encoding: chunked\r\n" : "";
  return { text: `${text}Connection: keep-alive\r\n${said}${coding}\r\n`, framing };
}

function framingOf(method: string, hasBody: boolean, length: number | undefined): RequestFraming {
  if (hasBody)
    return length === undefined ? { kind: "chunked" } : { kind: "length", bytes: length };
  if (length !== undefined && length > 0) throw new TypeError("a length is stated of no body");
  return expectingBody.has(method) ? { kind: "length", bytes: 0 } : { kind: "none" };
}

function lengthOf(value: string, before: number | undefined): number {
  const length = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(length) || before !== undefined)
    throw new TypeError("the length of the request's body is invalid");
  return length;
}

function isName(name: string): boolean {
  if (knownNames.has(name)) return true;
  if (!token.test(name)) return false;
  if (knownNames.size < knownNamesMax) knownNames.add(name);
  return true;
}
