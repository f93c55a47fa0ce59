// How a command reaches the customer API: where it is, with whose token, and how a refusal is told to the
// person at the shell.

import { readFileSync } from "node:fs";
import type { Options } from "../base/command.ts";
import { ApiError } from "../client/api-error.ts";
import { AccelError, codeOf, messageOf, systemCode } from "../core/faults.ts";
import { customerApiPrefix } from "../wire/customer/shape.ts";
import type { ProblemError } from "../wire/customer/problem.ts";
import { plain, shellWord } from "./text.ts";

export const apiOptions = {
  "api-url": { type: "string" },
  "token-file": { type: "string" },
  json: { type: "boolean" },
} as const satisfies Options;

export const apiUsage = [
  "  --api-url URL     central's address, such as https://central.example.com (else ACCEL_API_URL)",
  "  --token-file FILE  holds an API token (else ACCEL_API_TOKEN); no option takes the token itself, which `ps` would show",
  "  --json            the API's answer as it is",
].join("\n");

export type ApiAccess = { readonly baseUrl: string; readonly token: string };

type Given = {
  readonly "api-url"?: string | undefined;
  readonly "token-file"?: string | undefined;
};

/** Reads the access from the options, and what they leave out from the environment. Throws USAGE. */
export function apiAccess(given: Given, env: NodeJS.ProcessEnv): ApiAccess {
  const url = given["api-url"] ?? env["ACCEL_API_URL"] ?? "";
  if (url === "")
    throw new AccelError("USAGE", "where is central? Give --api-url URL, or set ACCEL_API_URL");
  const baseUrl = baseUrlOf(url);
  const file = given["token-file"];
  if (file !== undefined) return { baseUrl, token: fileToken(file) };
  const token = (env["ACCEL_API_TOKEN"] ?? "").trim();
  if (token === "")
    throw new AccelError("USAGE", "no API token: give --token-file FILE, or set ACCEL_API_TOKEN");
  return { baseUrl, token: checkedToken(token, "ACCEL_API_TOKEN") };
}

/**
 * Returns the base URL with or without the API's prefix: scripts for curl have the prefix in their variable.
 */
function baseUrlOf(text: string): string {
  const url = URL.parse(text);
  const isPlain =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    `${url.username}${url.password}${url.search}${url.hash}` === "";
  // The address is not repeated in the message, because it may hold a password.
  if (!isPlain)
    throw new AccelError(
      "USAGE",
      "the address of central must be an http or https URL without user name, query and fragment",
    );
  const path = url.pathname.replace(/\/+$/, "");
  return (
    url.origin +
    (path.endsWith(customerApiPrefix) ? path.slice(0, -customerApiPrefix.length) : path)
  );
}

function fileToken(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new AccelError("USAGE", `the token file ${path} cannot be read: ${messageOf(error)}`);
  }
  return checkedToken(text, `the token file ${path}`);
}

function checkedToken(text: string, where: string): string {
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new AccelError("USAGE", `${where} must hold one token and nothing else`);
  return text;
}

/** Returns whether all addresses of a name refused the connection. */
export function isNobodyListening(cause: unknown): boolean {
  const causes: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.every((one) => systemCode(one) === "ECONNREFUSED");
}

/** Turns what the client rejected with into what the person at the shell should read. */
export function toldToCaller(error: unknown, { baseUrl }: ApiAccess): unknown {
  if (error instanceof ApiError) return refusalOf(error, baseUrl);
  if (codeOf(error) !== "API_UNREACHABLE") return error;
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  // An AggregateError comes from a name with several addresses, each of which failed.
  const reason =
    cause instanceof AggregateError ? cause.errors.map(messageOf).join(", ") : messageOf(cause);
  return new AccelError("API_UNREACHABLE", `no answer from ${baseUrl}: ${reason}`, {
    cause: error,
    ...(isNobodyListening(cause) && {
      hint: "Nobody listens there, and nothing was sent. Check the address, and whether accel-central runs.",
    }),
    ...(/self-signed certificate|unable to (?:verify|get) .*certificate/.test(reason) && {
      hint: "The certificate is of an authority that is not trusted here: name the file with that authority (PEM) in the environment variable NODE_EXTRA_CA_CERTS.",
    }),
  });
}

function refusalOf(error: ApiError, baseUrl: string): AccelError {
  const { errors = [], status } = error.problem;
  const [wrong] = errors;
  if (wrong?.did_you_mean !== undefined && wrong.pattern === undefined)
    return new AccelError(
      "USAGE",
      `central refused ${errors.length === 1 ? "an item" : `${errors.length} items`}, nothing was cleared:\n${errors.map(itemText).join("\n")}`,
      { cause: error },
    );
  if (wrong?.pattern !== undefined)
    return new AccelError(
      "PATTERN_INVALID",
      `central refused ${errors.length === 1 ? "a pattern" : `${errors.length} patterns`}, nothing was cleared:\n${errors.map(errorText).join("\n")}`,
      { cause: error },
    );
  const again =
    error.retryAfterMs === undefined
      ? ""
      : `; try again in ${Math.ceil(error.retryAfterMs / 1_000)} s`;
  const code = status === 401 ? "TOKEN_REFUSED" : error.code;
  return new AccelError(code, plain(`${baseUrl} refused: ${error.message}${again}`), {
    cause: error,
    ...(code === error.code && { hint: error.hint }),
  });
}

/**
 * Writes the pattern with a mark below the place where it goes wrong, and the pattern that was probably
 * meant, ready for a shell.
 */
function errorText({
  message,
  pattern = "",
  position = 0,
  did_you_mean: meant,
}: ProblemError): string {
  return [
    `  ${plain(message)}`,
    `    ${plain(pattern)}`,
    `    ${" ".repeat(position)}^ at character ${position}`,
    ...(meant === undefined ? [] : [`  did you mean ${shellWord(plain(meant))}?`]),
  ].join("\n");
}

function itemText({ path, message, did_you_mean: meant }: ProblemError): string {
  const asked = meant === undefined ? "" : `; did you mean ${shellWord(plain(meant))}?`;
  return `  ${plain(path)}: ${plain(message)}${asked}`;
}
