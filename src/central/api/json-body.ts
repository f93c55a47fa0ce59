// The body of a request: at most so many bytes, JSON, an object. An empty one reads as `{}` whatever its type says.

import type { IncomingMessage } from "node:http";
import { readBody } from "../../base/http-listener.ts";
import { parseJsonText } from "../../core/json-text.ts";
import { invalid, problem, type Answer } from "./answer.ts";

export type BodyFound =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  /** `answer` undefined: the client is gone. */
  | { readonly ok: false; readonly answer: Answer | undefined };

const depthMax = 64;

export async function readJsonBody(request: IncomingMessage, bytesMax: number): Promise<BodyFound> {
  const read = await readBody(request, bytesMax);
  if (!read.ok) {
    if (read.reason === "aborted") return { ok: false, answer: undefined };
    return refused(problem(413, `the body is larger than ${bytesMax} bytes`));
  }
  if (read.body.length === 0) return { ok: true, value: {} };
  const { "content-type": type, "content-encoding": encoding } = request.headers;
  if (type !== undefined && !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type))
    return refused(problem(415, `the body must be application/json, not ${shown(type)}`));
  if (encoding !== undefined && encoding.toLowerCase() !== "identity")
    return refused(problem(415, `the body must not be encoded (${shown(encoding)})`));
  return parse(read.body);
}

function parse(bytes: Uint8Array): BodyFound {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refused(invalid([{ path: "", message: "the body is not UTF-8" }]));
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refused(invalid([{ path: "", message: faultOf(text) }]));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refused(invalid([{ path: "", message: "the body must be an object" }]));
  // An object read from JSON has string keys.
  return { ok: true, value: value as Readonly<Record<string, unknown>> };
}

function faultOf(text: string): string {
  const json = parseJsonText(text, { depthMax, repeatedMax: 0 });
  if (json.ok) return "the body is not JSON";
  const { line, column, message } = json.fault;
  return `the body is not JSON at line ${line}, column ${column}: ${message}`;
}

function refused(answer: Answer): BodyFound {
  return { ok: false, answer };
}

/** Of a header that is shown back. */
function shown(header: string): string {
  return JSON.stringify(header.slice(0, 100));
}
