// Judging the visitor of a request: the verdict, counted, and noted where it is against him.

import { fieldValue, type Field } from "../../core/http/http-fields.ts";
import type { ClientAddress, Scheme } from "../../core/http/client-address.ts";
import type { Verdict } from "../../core/serving/verdict.ts";
import type { DecisionTeller } from "../bots/decisions/decision-teller.ts";
import type { VisitorJudge } from "../bots/decisions/evidence.ts";
import type { ServedUnder } from "./pool/host-table.ts";
import type { RequestTally } from "./records/request-tally.ts";

export type JudgingDeps = {
  readonly judge: VisitorJudge;
  readonly tally: Pick<RequestTally, "judged">;
  readonly decisions: Pick<DecisionTeller, "note">;
};

/** A visitor of a host that is served, judged. */
export type JudgedVisitor = {
  readonly served: ServedUnder;
  readonly verdict: Verdict;
  /** The one that the verdict can be looked up by, "" where it is for the visitor. */
  readonly decisionId: string;
  /** The version of the state in which the host was found. */
  readonly version: number;
};

type Visitor = {
  readonly client: ClientAddress | undefined;
  readonly fields: readonly Field[];
  /** When the request came. */
  readonly startedWallMs: number;
};

/**
 * Judges the visitor, in one step with the look-up of the state: once the request waits, the tables of that
 * state are no longer its own.
 */
export function judgeRequest(
  deps: JudgingDeps,
  visitor: Visitor,
  served: ServedUnder,
  version: number,
): JudgedVisitor {
  const verdict = verdictOn(deps, visitor, served);
  deps.tally.judged(served.domain, verdict);
  const decisionId = verdict.kind === "allow" ? "" : noteDecision(deps, visitor, served, verdict);
  return { served, verdict, decisionId, version };
}

export function verdictOn(
  { judge }: JudgingDeps,
  { client, fields }: Visitor,
  { domain, host }: ServedUnder,
): Verdict {
  return judge(host.bots, client?.text ?? "", fieldValue(fields, "user-agent"), domain);
}

/** Notes a decision against a visitor and returns its id. */
export function noteDecision(
  { decisions }: JudgingDeps,
  { client, fields, startedWallMs: atMs }: Visitor,
  { host }: ServedUnder,
  verdict: Verdict,
): string {
  const userAgent = fieldValue(fields, "user-agent");
  const clientIp = client?.text ?? "";
  const policyOf = host.bots.unknownBotsPolicyOf;
  return decisions.note({ atMs, host: host.name, clientIp, userAgent, verdict, policyOf });
}

/** The seconds for which a site wants to be asked by https only. Plain HTTP says none, where anybody could (RFC 6797 §7.2). */
export function hstsOf({ compiled }: ServedUnder, scheme: Scheme): number {
  return scheme === "https" ? (compiled?.site.tls.hsts_s ?? 0) : 0;
}
