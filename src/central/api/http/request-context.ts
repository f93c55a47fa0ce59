// What an endpoint gets of its request, and the transactions that it runs, which also store the answer for a
// repetition and the line of the audit trail.

import type { IncomingMessage } from "node:http";
import type { Json } from "../../../core/journal/canonical-json.ts";
import { isGood, problem, type Answer } from "./answer.ts";
import { topicsOf } from "../change-topics.ts";
import { auditable, auditableMembers, madeIds } from "../audit-entry.ts";
import type { Context, Brought, Endpoint } from "./endpoint.ts";
import { answerOnce } from "./idempotent-call.ts";
import { queryOf } from "./query.ts";
import type { Ports } from "../deps.ts";
import { isInForce, type Actor } from "../../store/people/tokens.ts";
import type { Transactions } from "../../store/engine/customer-store.ts";
import type { IdempotentCall } from "../../store/engine/idempotency.ts";
import { recordAudit } from "../../store/people/audit.ts";
import { storeAnswer } from "../../store/engine/idempotency.ts";
import type { Work } from "../../store/engine/work.ts";

export type AskedRequest = {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly endpoint: Endpoint;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly address: string;
  readonly actor: Actor | undefined;
  readonly credentials: Brought | undefined;
  /** The body without the fields that are ignored. */
  readonly body: Json;
  /**
   * Returns the call under which the answer is repeated. For a body that came as a stream, the body is only
   * known when the change is made.
   */
  readonly once: (body: Json) => IdempotentCall | undefined;
  readonly gone: AbortSignal;
};

type Deps = { readonly store: Transactions; readonly ports: Pick<Ports, "journal" | "changes"> };

export function createContext({ store, ports }: Deps, asked: AskedRequest): Context {
  const { request, endpoint, address, gone } = asked;
  const transact: Context["read"] = async (action) => store.transact(action);
  return {
    param: paramOf(asked.params),
    query: queryOf(request.url ?? ""),
    clientAddress: address,
    credentials: asked.credentials,
    gone,
    header: (name) => {
      const value = request.headers[name];
      return typeof value === "string" ? value : undefined;
    },
    incoming: {
      type: request.headers["content-type"] ?? "",
      // A reader that stops early must not close the socket, over which the answer goes.
      get bytes() {
        return request.iterator({ destroyOnReturn: false });
      },
    },
    read: transact,
    prepare: transact,
    change: async (action, streamed, listed) => {
      const body = endpoint.takesStream !== undefined ? (streamed ?? {}) : asked.body;
      const once = asked.once(body);
      const { value, appended, concerned } = await store.run(async (work) => {
        if (asked.actor !== undefined && !(await isInForce(work, asked.actor)))
          return { keep: false, value: endedMeanwhile };
        // Asked again inside the transaction: of two requests with one key at the same time, the second finds
        // the first one's answer.
        const repeated = once === undefined ? undefined : await answerOnce(work, once);
        if (repeated !== undefined) return { keep: true, value: repeated };
        const answer = await action(work);
        const keep = isGood(answer);
        if (keep) await record(work, asked, body, answer);
        if (keep && once !== undefined && answer.kind === "json")
          await storeAnswer(work, once, answer.status, answer.body);
        return { keep, value: answer };
      }, listed);
      if (appended.length > 0) ports.journal.wake(appended);
      const topics = asked.actor !== undefined && isGood(value) ? topicsOf(endpoint) : [];
      if (asked.actor !== undefined && topics.length > 0) {
        const { customerId } = asked.actor;
        ports.changes.publish({ kind: "customer", customerId, topics, domains: concerned });
      }
      return value;
    },
  };
}

const endedMeanwhile = problem(401, "what this request was signed in with ended meanwhile", {
  headers: { "www-authenticate": 'Token realm="presentation-api"' },
});

export function paramOf(params: AskedRequest["params"]): Context["param"] {
  return (name) => {
    const value = params[name];
    if (value === undefined) throw new TypeError(`the path has no parameter ${name}`);
    return value;
  };
}

async function record(
  work: Work,
  { endpoint, params, actor, address, requestId }: AskedRequest,
  body: Json,
  answer: Answer,
): Promise<void> {
  const made = answer.kind === "json" ? madeIds(answer.body) : {};
  const number = (name: string): number | null =>
    typeof made[name] === "number" ? made[name] : null;
  await recordAudit(work, {
    via: "api",
    who: actor?.username ?? "",
    // Nobody is signed in when a trial begins; the trial itself makes its user and customer.
    user_id: actor?.userId ?? number("user_id"),
    customer_id: actor?.customerId ?? number("customer_id"),
    action: `${endpoint.method} ${endpoint.path}`,
    operation: endpoint.id,
    ids: {
      ...made,
      ...auditableMembers(params),
      ...(actor !== undefined && actor.tokenId !== null && { by_token_id: actor.tokenId }),
    },
    change: auditable(body),
    address,
    request_id: requestId,
  });
}
