// Posts a line to a chat hook. Hook URLs are customers' texts: where one leads is judged at each sending, by
// the address that is connected to.
//
// Redirects are not followed.

import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { judgedLookup, type ResolveName } from "../../base/judged-lookup.ts";
import { messageOf } from "../../core/faults.ts";
import { retryAfterMs } from "../../core/http/retry-after.ts";
import { hookUrlFault } from "../../core/addresses/public-address.ts";
import type { DeliverChat, Delivery } from "./delivery.ts";

export type HookSettings = {
  /** Whether hooks may lead into private networks. */
  readonly mayBePrivate: boolean;
  readonly timeoutMs: number;
  /** Replaces the system's resolver. */
  readonly resolve?: ResolveName;
};

/** The most bytes of an answer that are taken; nobody reads it. */
const answerBytesMax = 65_536;
const waitMsMax = 3_600_000;

class HookRefused extends Error {}

export function createHookDelivery({
  mayBePrivate,
  timeoutMs,
  resolve,
}: HookSettings): DeliverChat {
  return async ({ hookUrl, text }, { uid }, signal) => {
    const fault = hookUrlFault(hookUrl, mayBePrivate);
    if (fault !== undefined) return { kind: "refused", reason: `the hook's URL ${fault}` };
    const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const { promise, resolve: settle } = Promise.withResolvers<Delivery>();
    const url = new URL(hookUrl);
    const body = Buffer.from(JSON.stringify({ text }));
    const ask = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request: ClientRequest = ask(url, {
      method: "POST",
      agent: false,
      lookup: judgedLookup({
        mayBePrivate,
        refuse: (name) => new HookRefused(`${name} leads to a private address`),
        ...(resolve !== undefined && { resolve }),
      }),
      signal: ended,
      maxHeaderSize: 16_384,
      headers: {
        "content-type": "application/json",
        "content-length": body.length,
        "user-agent": "accel-central",
        "idempotency-key": uid,
      },
    });
    request.on("response", (response) => settle(answered(response)));
    request.on("error", (error) => settle(failed(error, ended.aborted && !signal.aborted)));
    request.end(body);
    return promise;
  };
}

/** Reads the outcome from the status; the rest of the answer is dropped within bounds. */
function answered(response: IncomingMessage): Delivery {
  const status = response.statusCode ?? 0;
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerBytesMax) response.destroy();
  });
  response.on("error", () => {});
  if (status >= 200 && status < 300) return { kind: "sent" };
  const reason = `the hook answered ${status}`;
  if (status >= 300 && status < 400)
    return { kind: "refused", reason: `${reason}; redirects are not followed` };
  const isPassing = status >= 500 || [408, 425, 429].includes(status);
  if (!isPassing) return { kind: "refused", reason };
  const waitMs = retryAfterMs(response.headers["retry-after"], Date.now());
  return waitMs === undefined || waitMs === 0
    ? { kind: "later", reason }
    : { kind: "later", reason, waitMs: Math.min(waitMsMax, waitMs) };
}

function failed(error: Error, isLate: boolean): Delivery {
  // A name that leads to a private address may lead elsewhere tomorrow; until then it is asked ever less
  // often.
  const reason = isLate ? "the hook does not answer in time" : messageOf(error);
  return { kind: "later", reason: reason.slice(0, 500) };
}
