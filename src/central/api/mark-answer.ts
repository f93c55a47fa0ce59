// The answer to a mark or a removal, as it was stored: with `?wait=` also what the deployments proved, with
// `?return=summary` without the list of addresses.

import type { BotRecord, BotSummary, MarkDeployment } from "../../wire/customer/bot.ts";
import type { BotSet } from "../../wire/journal.ts";
import { invalid, type Answer, type ProblemAnswer } from "./http/answer.ts";
import type { EndpointCall } from "./http/endpoint.ts";
import { isAwaited, waitFault, waitMsOf, whileTrue } from "./proof-wait.ts";
import type { MarkFound, SetPlace } from "../store/bots/mark-proof.ts";
import type { Ports } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import { findMarkProof } from "../store/bots/mark-proof.ts";

export function markQueryFault(query: URLSearchParams): ProblemAnswer | undefined {
  const fault = query.has("wait") ? waitFault(query) : undefined;
  if (fault !== undefined) return fault;
  return ["summary", null].includes(query.get("return"))
    ? undefined
    : invalid([{ path: "?return", message: "must be summary, or absent" }]);
}

/** Answers from the record that `attach` or `detach` stored, anew for each repetition of the call. */
export async function markAnswer(
  call: EndpointCall<unknown, Actor>,
  set: BotSet,
  stored: Answer,
  ports: Pick<Ports, "live" | "receipts">,
): Promise<Answer> {
  if (stored.kind !== "json") return stored;
  const { query, actor } = call;
  const record = stored.body as BotRecord; // `attach` and `detach` made it.
  const place: SetPlace = { customerId: actor.customerId, host: record.domain, set };
  const proved = query.has("wait") ? { deployments: await provedMarks(call, place, ports) } : {};
  const told = query.get("return") === "summary" ? summaryOf(record) : record;
  return { ...stored, body: { ...told, ...proved } };
}

function summaryOf({ ip_addresses: addresses, ...record }: BotRecord): BotSummary {
  return { ip_address_count: addresses.length, ...record };
}

/**
 * Waits until every connected deployment has told of the set as it is now, or the time is up, and returns
 * what is proved.
 */
export async function provedMarks(
  { read, gone, query }: EndpointCall<unknown, Actor>,
  place: SetPlace,
  { live, receipts }: Pick<Ports, "live" | "receipts">,
): Promise<readonly MarkDeployment[]> {
  const waitMs = waitMsOf(query) ?? 0; // It was looked at before.
  const signal = AbortSignal.any([gone, AbortSignal.timeout(waitMs)]);
  const current = async (before?: MarkFound): Promise<MarkFound | undefined> =>
    read(async (work) => findMarkProof(work, place, before));
  const isPending = ({ deployments }: MarkFound): boolean =>
    deployments.some((one) => isAwaited(one, ({ state }) => state === "pending", live));
  const found = await whileTrue(isPending, current, receipts, signal);
  return found?.deployments.map(({ entries: _entries, ...deployment }) => deployment) ?? [];
}
