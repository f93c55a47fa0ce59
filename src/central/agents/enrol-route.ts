// `POST /agent-api/v1/enrol` and `GET /agent-api/v1/ca`: what a host asks that has a code and no secret yet.
//
// Whoever guesses is limited by address. Guessing is hopeless at 128 bits, so a refusal may say what is wrong with a code.
// A site gives a burst of as many answers as one code may have uses.

import type { IncomingMessage } from "node:http";
import { readBody } from "../../base/http-listener.ts";
import { parseJson } from "../../core/journal/json-text.ts";
import { codeUsesMax, decodeEnrol } from "../../wire/enrolment.ts";
import { describeErrors } from "../../wire/validate.ts";
import { agentAnswer, refusal, type AgentAnswer } from "./answers.ts";
import { createRateLimit } from "./rate-limit.ts";
import { clockFault } from "./token-route.ts";
import type { Authority } from "../settings/authority.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import { exchangeCode, type Exchanged } from "../store/journal/enrolments.ts";

const bodyBytesMax = 4_096;
const keysMax = 20_000;
/** The burst is how many hosts behind one address may wait for their answers at a time. */
const failuresPerAddress = { burst: codeUsesMax, perSecond: 1 / 10, keysMax };
const exchangesPerSite = { burst: codeUsesMax, perSecond: 1, keysMax };

export type EnrolDeps = {
  readonly transactions: Transactions;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
  readonly addressOf: (request: IncomingMessage) => string;
  readonly authority: () => Authority | undefined;
  /** Among how many centrals limits are divided; 1 if absent. */
  readonly centrals?: () => number;
};

/** What is wrong with a code, in words that follow "this code". */
const faults: Readonly<Record<Exclude<Exchanged["kind"], "joined" | "repeated">, string>> = {
  unknown: "is none of this central's",
  revoked: "was revoked",
  expired: "has expired",
  "used-up": "was used by as many hosts as it is for",
  "repeated-late": "was exchanged by this host before; its answer is repeated for ten minutes only",
  "site-deleted": "is for a deployment site that was deleted",
};

export function createEnrolRoute(
  deps: EnrolDeps,
): (request: IncomingMessage) => Promise<AgentAnswer> {
  const failures = createRateLimit(failuresPerAddress, deps.monotonicMs, deps.centrals);
  const exchanges = createRateLimit(exchangesPerSite, deps.monotonicMs, deps.centrals);
  return async (request) => {
    const address = deps.addressOf(request);
    const waitMs = failures.take(address);
    if (waitMs > 0) return tooMany(waitMs, "this address");
    const read = await readBody(request, bodyBytesMax);
    if (!read.ok) return refusal("too_large", "the body is too large");
    const asked = decodeEnrol(parseJson(read.body.toString("utf8")));
    if (!asked.ok) return refusal("invalid", describeErrors(asked.errors));
    // Before the exchange: a host whose clock is wrong could not sign in, and its code would be used.
    const skewed = clockFault(request.headers.date, deps.now());
    if (skewed !== undefined) return skewed;
    // Taken once, however often the exchange is run.
    let takenMs: number | undefined;
    const take = (siteId: number): number => (takenMs ??= exchanges.take(String(siteId)));
    const { value } = await deps.transactions.run(async (work) => {
      const exchanged = await exchangeCode(work, asked.value, address);
      // Codes that are refused take nothing from the site: who has an old one must not hold up its new hosts.
      const siteWaitMs = "answer" in exchanged ? take(exchanged.answer.deployment_site_id) : 0;
      return { keep: siteWaitMs === 0, value: { exchanged, siteWaitMs } };
    });
    const { exchanged, siteWaitMs } = value;
    // Whoever has a good code is not guessing, even if the site's others were faster.
    if ("answer" in exchanged) failures.give(address);
    if (siteWaitMs > 0) return tooMany(siteWaitMs, "this deployment site");
    if ("answer" in exchanged) return agentAnswer(exchanged.answer);
    return refusal("code_refused", `this code ${faults[exchanged.kind]}`, {
      hint: "Make another one: `accel-central site enrol`, or the customer API.",
    });
  };
}

/** Answers with the authority's certificate, byte by byte as its digest was taken. */
export function createAuthorityRoute(deps: Pick<EnrolDeps, "authority">): () => AgentAnswer {
  return () => {
    const authority = deps.authority();
    return authority === undefined
      ? refusal("not_found", "hosts need no further authority to trust this central")
      : agentAnswer({ ca_pem: authority.pem });
  };
}

function tooMany(waitMs: number, of: string): AgentAnswer {
  return refusal("too_many", `too many attempts of ${of}`, {
    retryAfterS: Math.ceil(waitMs / 1_000),
  });
}
