// How a call of the customer API fails: central refused it, with the problem document that says why.

import { AccelError, type FaultCode } from "../core/faults.ts";
import type { Problem } from "../wire/customer/problem.ts";

/**
 * Central's refusal of a call. Calls that never reached central, or whose answer is not understood, fail with
 * plain AccelErrors: API_UNREACHABLE, MESSAGE_INVALID.
 */
export class ApiError extends AccelError {
  readonly status: number;
  readonly problem: Problem;
  /** The `Retry-After` of a 429 or 503. */
  readonly retryAfterMs: number | undefined;

  constructor(call: string, problem: Problem, retryAfterMs: number | undefined) {
    const code = codeOfStatus(problem.status);
    const hint = code === "CENTRAL_REFUSED" ? hintOfStatus(problem.status) : undefined;
    super(code, `${call}: ${describe(problem)}`, hint === undefined ? {} : { hint });
    this.name = "ApiError";
    this.status = problem.status;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

function codeOfStatus(status: number): FaultCode {
  if (status === 404) return "NOT_FOUND";
  if (status === 409) return "CONFLICT";
  return [400, 413, 415].includes(status) ? "REQUEST_INVALID" : "CENTRAL_REFUSED";
}

/** Undefined where central failed itself: the code's own says that its log has more. */
function hintOfStatus(status: number): string | undefined {
  switch (status) {
    case 401:
      return "Central knows no such API token: take one that is in force.";
    case 403:
      return "The token does not allow this; the message says what it lacks. Take another one.";
    case 429:
      return "Nothing was changed. Wait for as long as the answer says, and try again.";
    case 503:
      return "Central cannot do this now, for the reason in the message: try again later.";
    default:
      return status >= 500
        ? undefined
        : "Central refused what was asked, for the reason in the message. Nothing was changed.";
  }
}

function describe({ status, title, detail, errors, request_id: id }: Problem): string {
  const all = (errors ?? []).map(({ path, message }) => `${path} ${message}`.trim());
  const more = all.length > 1 ? ` [${all.join("; ")}]` : "";
  return `${status} ${title}: ${detail}${more}${id === undefined ? "" : ` (request ${id})`}`;
}
