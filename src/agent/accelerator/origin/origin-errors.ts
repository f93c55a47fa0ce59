// What went wrong with an origin, by the error that its connection, undici, DNS or the kernel gave.

import { messageOf } from "../../../core/faults.ts";

export type OriginFailure = {
  readonly kind: "unreachable" | "timeout" | "busy" | "broken";
  /** The reason for the log and the metrics; a visitor sees only the kind. */
  readonly reason: string;
  /** Whether nothing of the request can have reached the origin. */
  readonly isUnsent: boolean;
};

const unsentCodes: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "ERR_ORIGIN_REFUSED",
]);

const timeoutCodes: ReadonlySet<unknown> = new Set([
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "ERR_ORIGIN_HEAD_TIMEOUT",
  "ERR_ORIGIN_BODY_TIMEOUT",
]);

export function originFailure(error: unknown): OriginFailure {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  // An AggregateError says that every address of a name failed.
  const codes = [code, ...(error instanceof AggregateError ? error.errors.map(codeIn) : [])];
  const isTls =
    typeof code === "string" && /^(?:ERR_TLS_|CERT_|DEPTH_|UNABLE_TO_|SELF_SIGNED_)/.test(code);
  const isUnsent = isTls || codes.some((one) => unsentCodes.has(one));
  const kind = codes.some((one) => timeoutCodes.has(one))
    ? "timeout"
    : isUnsent
      ? "unreachable"
      : "broken";
  return { kind, reason: messageOf(error), isUnsent };
}

function codeIn(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
