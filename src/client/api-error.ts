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
    super(codeOfStatus(problem.status), `${call}: ${describe(problem)}`);
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

function describe({ status, title, detail, errors, request_id: id }: Problem): string {
  const all = (errors ?? []).map(({ path, message }) => `${path} ${message}`.trim());
  const more = all.length > 1 ? ` [${all.join("; ")}]` : "";
  return `${status} ${title}: ${detail}${more}${id === undefined ? "" : ` (request ${id})`}`;
}
