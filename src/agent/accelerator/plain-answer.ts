// The answers that the plan alone gives: nothing is read or asked for them.

import { withEdits } from "../../core/http/header-edits.ts";
import type { Field } from "../../core/http/http-fields.ts";
import { httpsUrl, type RequestTarget } from "../../core/http/request-path.ts";
import type { RequestAnswer } from "../../core/serving/request-plan.ts";
import type { Verdict } from "../../core/serving/verdict.ts";
import type { RequestRecord } from "../../wire/request-log.ts";
import { textAnswer } from "./doors/answer.ts";
import { askedPort, type AskedAt } from "./origin/origin-request.ts";
import type { JudgedVisitor } from "./judging.ts";
import type { AskedLimits } from "./limits/request-rates.ts";
import type { ServedSite } from "./pool/host-table.ts";

export type PlainAnswer = {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: string;
  readonly cache: RequestRecord["cache"];
};

/** What is known of a request. The plan wants nothing of what is not. */
export type PlainAsked = {
  readonly at: AskedAt;
  readonly site: ServedSite;
  readonly asked: RequestTarget;
  readonly judged: Pick<JudgedVisitor, "verdict" | "decisionId"> | undefined;
  readonly limit: Pick<AskedLimits, "decisionId"> | undefined;
  /** The port on which HTTPS is served; null if this program does not serve it. */
  readonly tlsPort: number | null;
};

export type PlainStep = Extract<
  RequestAnswer,
  {
    readonly kind:
      | "refused"
      | "challenge"
      | "blocked"
      | "limited"
      | "options"
      | "redirect-to-https"
      | "redirect";
  }
>;

const plainKinds: ReadonlySet<RequestAnswer["kind"]> = new Set<PlainStep["kind"]>([
  "refused",
  "challenge",
  "blocked",
  "limited",
  "options",
  "redirect-to-https",
  "redirect",
]);

export function isPlain(step: RequestAnswer): step is PlainStep {
  return plainKinds.has(step.kind);
}

export function plainAnswer(step: PlainStep, known: PlainAsked): PlainAnswer {
  switch (step.kind) {
    case "refused":
      return {
        status: step.status,
        ...textAnswer(step.status, step.text, step.fields),
        cache: "none",
      };
    case "challenge":
      return challengeFound(step.keyAuthorization);
    case "blocked":
      return blockedAnswer(known.judged?.verdict.reason, known.judged?.decisionId ?? "");
    case "limited":
      return limitedAnswer(step.waitS, known.limit?.decisionId ?? "");
    case "options": {
      const said = step.isOfFiles ? Object.entries(known.site.site.headers.set) : [];
      return { status: 204, fields: [["Allow", step.allow], ...said], body: "", cache: "none" };
    }
    case "redirect-to-https":
      return redirect(308, securePlace(known), known);
    case "redirect":
      return redirect(step.status, step.to, known);
    default:
      return step satisfies never;
  }
}

/** The answer to a directory of ACME (RFC 8555 §8.3). */
function challengeFound(keyAuthorization: string): PlainAnswer {
  const fields: readonly Field[] = [
    ["Content-Type", "application/octet-stream"],
    ["Content-Length", `${keyAuthorization.length}`],
    ["X-Content-Type-Options", "nosniff"],
    ["Cache-Control", "no-store"],
  ];
  return { status: 200, fields, body: keyAuthorization, cache: "none" };
}

export function blockedAnswer(
  reason: Verdict["reason"] | undefined,
  decisionId: string,
): PlainAnswer {
  const text = `Access to this site is denied (${reason}).`;
  const decision: Field = ["X-Accel-Decision", decisionId];
  return { status: 403, ...textAnswer(403, text, [decision]), cache: "blocked" };
}

export function limitedAnswer(waitS: number, decisionId: string): PlainAnswer {
  const text = `Too many requests of this address. Ask again in ${waitS} s.`;
  const fields: readonly Field[] = [
    ["Retry-After", String(waitS)],
    ["X-Accel-Decision", decisionId],
  ];
  return { status: 429, ...textAnswer(429, text, fields), cache: "none" };
}

function redirect(status: number, to: string, { site }: PlainAsked): PlainAnswer {
  const fields: readonly Field[] = [
    ["Location", to],
    ["Content-Length", "0"],
  ];
  return { status, fields: withEdits(fields, site.site.headers), body: "", cache: "none" };
}

/** Who came to another port than 80 is where ports are not the usual ones; the others find HTTPS where everybody does. */
function securePlace({ at, site, asked, tlsPort }: PlainAsked): string {
  const { host } = site.site;
  const isOdd = askedPort(at) !== undefined && tlsPort !== null && tlsPort !== 443;
  return httpsUrl(isOdd ? `${host}:${tlsPort}` : host, asked);
}
