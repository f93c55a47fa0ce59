// `Idempotency-Key` on a POST: for a day, the first answer is repeated as it was stored in its transaction.

import type { IncomingMessage } from "node:http";
import { canonicalJson, type Json } from "../../../core/journal/canonical-json.ts";
import { conflict, type Answer } from "./answer.ts";
import type { Endpoint } from "./endpoint.ts";
import { queryOf } from "./query.ts";
import type { Actor } from "../../store/people/tokens.ts";
import type { IdempotentCall } from "../../store/engine/idempotency.ts";
import { sha256Of } from "../../../core/ids.ts";
import { findAnswer } from "../../store/engine/idempotency.ts";
import type { Work } from "../../store/engine/work.ts";

const keyCharsMax = 255;
/**
 * The least length of a key without credentials. Such a key, with its token, alone tells who may have the
 * answer from all others behind one address, so nobody else must come upon it.
 */
const anyonesKeyCharsMin = 16;

/**
 * Returns the call that a key stands for, undefined if there is no key, or a text that says what is wrong
 * with the key. Requests are the same if their path, what the query says is to be done, and their fields are, however these are spelled.
 */
export function idempotentCall(
  request: IncomingMessage,
  caller: { readonly actor: Actor | undefined; readonly address: string },
  { auth, method, path }: Pick<Endpoint, "auth" | "method" | "path">,
  params: Readonly<Record<string, string | undefined>>,
  body: Json,
): IdempotentCall | undefined | string {
  const key = request.headers["idempotency-key"];
  // A cookie is in no answer that is stored.
  if (method !== "POST" || auth === "sign-in" || key === undefined) return undefined;
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key) || key.length > keyCharsMax)
    return `must be 1 to ${keyCharsMax} visible ASCII characters`;
  const query = meantBy(request.url ?? "");
  const named = query.length === 0 ? {} : { query };
  const text = canonicalJson({ method, path, params: { ...params }, ...named, body });
  const requestDigest = sha256Of(text);
  const { actor, address } = caller;
  // By token: one that may do less must not get the answer of one that may do more.
  if (actor !== undefined) {
    const by = actor.tokenId === null ? "" : `/token:${actor.tokenId}`;
    return { scope: `user:${actor.userId}${by}`, key, requestDigest };
  }
  if (key.length < anyonesKeyCharsMin)
    return `must be at least ${anyonesKeyCharsMin} characters where there are no credentials, and random (a UUID)`;
  // Another request under the same key may be somebody else's, so it counts as a call of its own and learns
  // nothing of this one.
  return { scope: `anyone:${address}:${requestDigest}`, key, requestDigest };
}

/** How an answer is given. A call is the same one however long it is waited for. */
const answerParameters = new Set(["wait", "return", "format"]);

/** The parameters of the query that say what is to be done. */
function meantBy(url: string): [name: string, value: string][] {
  return [...queryOf(url)]
    .filter(([name]) => !answerParameters.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns the answer that was given before, or undefined for a new key. */
export async function answerOnce(work: Work, call: IdempotentCall): Promise<Answer | undefined> {
  const found = await findAnswer(work, call);
  if (found === undefined) return undefined;
  if (found.outcome === "other-request")
    return conflict("this Idempotency-Key was used for another request");
  const { status, body } = found;
  return { kind: "json", status, body, headers: { "idempotency-replayed": "true" } };
}
