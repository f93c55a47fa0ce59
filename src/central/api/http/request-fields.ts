// Reads the fields of a request. The body, of limited size, is a JSON object, or a form if the endpoint takes
// one. An empty body reads as `{}`, whatever its type says.

import type { IncomingMessage } from "node:http";
import { readBody } from "../../../base/http-listener.ts";
import { parseJsonText, type RepeatedName } from "../../../core/journal/json-text.ts";
import type { ProblemError } from "../../../wire/customer/problem.ts";
import { pointer } from "../../../wire/shape-errors.ts";
import { invalid, problem, type Answer } from "./answer.ts";

export type BodyFound =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  /** `answer` is undefined if the client is gone. */
  | { readonly ok: false; readonly answer: Answer | undefined };

const depthMax = 64;
/** The most names given twice that are reported. */
const repeatedShown = 10;
/** Time for 1 MiB at 140 kbit/s. */
const bodyTimeoutMs = 60_000;

type Limits = { readonly bodyBytesMax: number; readonly takesForms: boolean };

export async function readFields(
  request: IncomingMessage,
  { bodyBytesMax, takesForms }: Limits,
  timeoutMs = bodyTimeoutMs,
): Promise<BodyFound> {
  const read = await readBody(request, bodyBytesMax, timeoutMs);
  if (!read.ok) {
    if (read.reason === "aborted") return { ok: false, answer: undefined };
    if (read.reason === "too slow")
      return refused(problem(408, `the body took longer than ${timeoutMs / 1_000} s`));
    return refused(problem(413, `the body is larger than ${bodyBytesMax} bytes`));
  }
  if (read.body.length === 0) return { ok: true, value: {} };
  const { "content-type": type, "content-encoding": encoding } = request.headers;
  const isForm = takesForms && type !== undefined && /^multipart\/form-data\s*;/i.test(type);
  if (!isForm && type !== undefined && !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type)) {
    const known = `application/json${takesForms ? " or multipart/form-data" : ""}`;
    return refused(problem(415, `the body must be ${known}, not ${shown(type)}`));
  }
  if (encoding !== undefined && encoding.toLowerCase() !== "identity")
    return refused(problem(415, `the body must not be encoded (${shown(encoding)})`));
  return isForm ? parseForm(type, read.body) : parse(read.body);
}

/** Reads a form; files and plain parts count alike (RFC 7578). */
async function parseForm(type: string, bytes: Uint8Array): Promise<BodyFound> {
  let form: FormData;
  try {
    form = await new Response(new Uint8Array(bytes), {
      headers: { "content-type": type },
    }).formData();
  } catch {
    return refused(invalid([{ path: "", message: "the body is no multipart/form-data" }]));
  }
  const fields = new Map<string, string>();
  for (const [name, part] of form) {
    if (fields.has(name))
      return refused(invalid([{ path: "", message: `part ${shown(name)} is given twice` }]));
    fields.set(name, typeof part === "string" ? part : await part.text());
  }
  return { ok: true, value: Object.fromEntries(fields) };
}

function parse(bytes: Uint8Array): BodyFound {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refused(invalid([{ path: "", message: "the body is not UTF-8" }]));
  }
  const json = parseJsonText(text, { depthMax, repeatedMax: repeatedShown });
  if (!json.ok) {
    const { line, column, message } = json.fault;
    const place = `line ${line}, column ${column}`;
    return refused(
      invalid([{ path: "", message: `the body is not JSON at ${place}: ${message}` }]),
    );
  }
  // Whoever sends a field twice means both, and only one could be taken.
  if (json.repeated.length > 0) return refused(invalid(json.repeated.map(givenTwice)));
  const { value } = json;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refused(invalid([{ path: "", message: "the body must be an object" }]));
  // An object read from JSON has string keys.
  return { ok: true, value: value as Readonly<Record<string, unknown>> };
}

function givenTwice({ path, line, column }: RepeatedName): ProblemError {
  const name = shown(String(path.at(-1)));
  return {
    path: pointer(path),
    message: `${name} is given twice, again at line ${line}, column ${column}`,
  };
}

function refused(answer: Answer): BodyFound {
  return { ok: false, answer };
}

/** Shortens a text that is shown back. */
function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
