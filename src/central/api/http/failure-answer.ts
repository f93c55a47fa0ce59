// What a customer is answered where a request failed, by what failed and by whether it was to change something.

import type { IncomingMessage } from "node:http";
import type { Overdue } from "../../../base/http-listener.ts";
import { codeOf } from "../../../core/faults.ts";
import { isLockTimeout, isStoreAway } from "../../store/engine/postgres-faults.ts";
import { problem, type ProblemAnswer } from "./answer.ts";

/** Seconds: a database restarts in less. */
const storeRetryS = "5";
const stoppingText = "central stops or begins anew";

/** Why waiting ends where central stops: what cannot be told by then throws it. */
export const centralStops = new Error(stoppingText);

/** What is answered where a request failed. While the store cannot be had, nobody knows of a change under way whether it is in force. */
export function failureAnswer(
  error: unknown,
  requestId: string,
  method: string | undefined,
): ProblemAnswer {
  const code = codeOf(error);
  if (error === centralStops) return again(stoppingText, requestId, method);
  if (isLockTimeout(error))
    return again("another change holds what is asked for, and takes long", requestId, method);
  if (isStoreAway(error)) return again("central's store cannot be had now", requestId, method);
  if (code === "OBJECTS_UNREACHABLE")
    return again(
      isReading(method)
        ? "central's storage of files cannot be had now"
        : "central's storage of files cannot be had now, and nothing was changed",
      requestId,
      method,
    );
  return problem(500, "central failed; its log has more under this id", { requestId });
}

/** What is answered where the work of a request takes longer than there is time. Nobody knows of a change whether it will be in force. */
export function overdueAnswer(
  why: Overdue,
  requestId: string,
  { method, complete }: Pick<IncomingMessage, "method" | "complete">,
): ProblemAnswer {
  if (why === "still" && !complete)
    return problem(408, "the request was not whole in time", { requestId });
  const what = why === "ending" ? stoppingText : "central had no answer in time";
  return again(what, requestId, method);
}

function again(what: string, requestId: string, method: string | undefined): ProblemAnswer {
  return problem(
    503,
    isReading(method) ? `${what}; try again` : `${what}; try again, with the same Idempotency-Key`,
    { requestId, headers: { "retry-after": storeRetryS } },
  );
}

function isReading(method: string | undefined): boolean {
  return method === "GET" || method === "HEAD";
}
