// `Idempotency-Key` on a POST: the first answer, as it was stored in the transaction that it answers for, is repeated for a day.

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { canonicalJson, type Json } from "../../core/canonical-json.ts";
import { conflict, type Answer } from "./answer.ts";
import type { Endpoint } from "./endpoint.ts";
import type { IdempotentCall, Unit } from "./unit.ts";

/** Undefined where there is no key. The same request is the same path and the same fields, however they are spelled. */
export function idempotentCall(
  request: IncomingMessage,
  scope: string,
  { method, path }: Endpoint,
  params: Readonly<Record<string, string | undefined>>,
  body: Json,
): IdempotentCall | undefined | "unusable" {
  const key = request.headers["idempotency-key"];
  if (method !== "POST" || key === undefined) return undefined;
  if (typeof key !== "string" || !/^[\x21-\x7e]{1,255}$/.test(key)) return "unusable";
  const text = canonicalJson({ method, path, params: { ...params }, body });
  return { scope, key, requestDigest: createHash("sha256").update(text).digest("hex") };
}

/** The answer that was given before; undefined for a new key. */
export async function answerOnce(unit: Unit, call: IdempotentCall): Promise<Answer | undefined> {
  const found = await unit.idempotency.find(call);
  if (found === undefined) return undefined;
  if (found.outcome === "other-request")
    return conflict("this Idempotency-Key was used for another request");
  const { status, body } = found;
  return { kind: "json", status, body, headers: { "idempotency-replayed": "true" } };
}
