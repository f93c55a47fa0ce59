// What a customer is answered where a request failed, by what failed and by whether it was to change something.

import { codeOf } from "../../../core/faults.ts";
import { problem, type ProblemAnswer } from "./answer.ts";

/** Seconds: a database restarts in less. */
const storeRetryS = "5";

/** What is answered where a request failed. While the store cannot be had, nobody knows of a change under way whether it is in force. */
export function failureAnswer(
  error: unknown,
  requestId: string,
  method: string | undefined,
): ProblemAnswer {
  const code = codeOf(error);
  const isReading = method === "GET" || method === "HEAD";
  if (code === "STORE_UNREACHABLE" || code === "BUSY")
    return problem(
      503,
      isReading
        ? "central's store cannot be had now; try again"
        : "central's store cannot be had now; try again, with the same Idempotency-Key",
      { requestId, headers: { "retry-after": storeRetryS } },
    );
  if (code === "OBJECTS_UNREACHABLE")
    return problem(
      503,
      isReading
        ? "central's storage of files cannot be had now; try again"
        : "central's storage of files cannot be had now, and nothing was changed; try again, with the same Idempotency-Key",
      { requestId, headers: { "retry-after": storeRetryS } },
    );
  return problem(500, "central failed; its log has more under this id", { requestId });
}
