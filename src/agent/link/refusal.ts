// What central's refusals mean to the agent, and which faults only time can heal.

import { parseJson } from "../../core/journal/json-text.ts";
import { AccelError, codeOf, messageOf, systemCode, type FaultCode } from "../../core/faults.ts";
import { decodeAgentApiError, type AgentApiError } from "../../wire/token.ts";

const faults: Readonly<Record<AgentApiError["code"], FaultCode>> = {
  unknown_name: "UNKNOWN_NAME16",
  wrong_secret: "WRONG_SECRET16",
  expired_token: "TOKEN_EXPIRED",
  clock_skew: "CLOCK_SKEWED",
  site_deleted: "SITE_DELETED",
  code_refused: "CODE_REFUSED",
  invalid: "MESSAGE_INVALID",
  not_found: "NOT_FOUND",
  conflict: "CONFLICT",
  too_large: "MESSAGE_INVALID",
  too_many: "CENTRAL_REFUSED",
  unavailable: "CENTRAL_UNREACHABLE",
  internal: "CENTRAL_REFUSED",
};

/** The statuses that proxies answer in central's place. */
const awayStatuses: ReadonlySet<number> = new Set([502, 503, 504]);
const gatewayCode = "GATEWAY";
const awayHint =
  "Central does not answer now behind the proxy that stands before it: see on central's host whether accel-central runs.";
const foreignHint =
  "Check that the address is central's, and that the proxy before central hands /agent-api/ to it.";
const tooManyHint = "Nothing was taken. Wait a minute and try again; an agent that runs does so.";

const unavailableHint =
  "Central answers, and the network to it is well; it cannot do this now, for the reason that it gives: `accel-central status` on its host says more. The agent goes on serving, and tries again.";
const hints: Readonly<Partial<Record<AgentApiError["code"], string>>> = {
  too_many: tooManyHint,
  unavailable: unavailableHint,
};

/**
 * Makes the fault of a refusal. `text` is the body as received; `what` names the call and holds no secret.
 */
export function linkRefusal(status: number, text: string, what: string): AccelError {
  const answer = refusalBody(text);
  if (answer === undefined) {
    const isAway = awayStatuses.has(status);
    const text = `${what} was answered ${status} by something other than central`;
    return new AccelError(isAway ? "CENTRAL_UNREACHABLE" : "CENTRAL_REFUSED", text, {
      hint: isAway ? awayHint : foreignHint,
      ...(isAway && { cause: Object.assign(new Error(`status ${status}`), { code: gatewayCode }) }),
    });
  }
  // This code stops serving, so it counts only with the status that the contract gives it.
  const code =
    answer.code === "site_deleted" && status !== 401 ? "CENTRAL_REFUSED" : faults[answer.code];
  const message = `${what} was refused: ${answer.message} (${status} ${answer.code})`;
  const hint = hints[answer.code];
  return new AccelError(code, message, hint === undefined ? {} : { hint });
}

/** Returns the error that central sent; undefined if the body is not central's. */
export function refusalBody(text: string): AgentApiError | undefined {
  const decoded = decodeAgentApiError(parseJson(text));
  return decoded.ok ? decoded.value : undefined;
}

/**
 * Whether a fault says nothing about what was asked, only that central cannot be asked now. Such a request is
 * repeated without end.
 */
export function isBetweenUs(error: unknown): boolean {
  return betweenUs.has(codeOf(error));
}

const betweenUs: ReadonlySet<FaultCode> = new Set([
  "CENTRAL_UNREACHABLE",
  "CENTRAL_REFUSED",
  "UNKNOWN_NAME16",
  "WRONG_SECRET16",
  "TOKEN_EXPIRED",
  "CLOCK_SKEWED",
] as const);

/** What the system says where no process has the port, or no host the address, and what stands for a proxy that says so. */
const nobodyCodes: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  gatewayCode,
]);

/** Returns whether nothing answers for central: a request that ends so has cost central nothing. */
export function isNobodyThere(thrown: unknown): boolean {
  for (let at = thrown; at instanceof Error; at = at.cause)
    if (nobodyCodes.has(systemCode(at) ?? "")) return true;
  return false;
}

/** Wraps whatever the network library threw, such as failures of connecting, of TLS, resets and timeouts. */
export function unreachable(what: string, cause: unknown): AccelError {
  if (cause instanceof AccelError) return cause;
  // When both address families failed, the first error says enough.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  return new AccelError("CENTRAL_UNREACHABLE", `${what}: ${messageOf(first)}`, { cause });
}
