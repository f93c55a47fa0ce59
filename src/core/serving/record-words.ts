// Says why a request was answered as it was, as far as its record tells: the verdict, then the cache.

import { limitKinds } from "../limits/limit-verdict.ts";
import { tellRecordedLimit } from "../limits/limit-words.ts";
import { verdictKinds, verdictReasons } from "./verdict.ts";
import { tellVerdict } from "./verdict-words.ts";

/** What a record tells. `verdict`, `reason` and `cache` may be words that only a newer release knows. */
export type RecordedRequest = {
  readonly verdict: string;
  readonly reason: string;
  readonly bot: string | null;
  readonly clientIp: string;
  readonly cache: string;
  readonly status: number;
  /** 0 where no origin was asked. */
  readonly backendSeconds: number;
};

export const passedOn = "passed on to the backend, and not stored";

export function tellRecord(record: RecordedRequest): string {
  const { verdict, reason, bot, clientIp, status } = record;
  const kind = verdictKinds.find((one) => one === verdict);
  const limit = limitKinds.find((one) => one === verdict);
  const because = verdictReasons.find((one) => one === reason);
  const judged =
    limit !== undefined
      ? tellRecordedLimit(limit, clientIp)
      : kind !== undefined && because !== undefined
        ? tellVerdict({ kind, reason: because, bot, clientIp })
        : verdict === "none"
          ? "answered before anything was decided about the visitor"
          : `${verdict} ${reason}`.trim();
  const left =
    status === 499 ? " The visitor left, or was cut off, before all of it was sent." : "";
  return `${judged}. ${cacheWords(record)}${left}`;
}

function cacheWords({ cache, status, backendSeconds }: RecordedRequest): string {
  const isAsked = backendSeconds > 0;
  switch (cache) {
    case "hit":
      return "The cache had the answer.";
    case "miss":
      return isAsked
        ? "The cache had no answer that could be used, so the backend was asked."
        : "The cache had no answer that could be used; it came from the site's files, or was shared with another request.";
    case "stale":
      return isAsked
        ? "The cache had an answer that was no longer fresh; it was sent because the backend failed."
        : "The cache had an answer that was no longer fresh and could still be sent.";
    case "pass":
      return isAsked
        ? `It was ${passedOn}: what the visitor sent, a rule, or the backend's answer keeps it out of the cache. Cache-Status of the answer says which (\`fwd\` and \`detail\`).`
        : `It was ${passedOn}.`;
    case "blocked":
      return "The cache was not asked.";
    case "none":
      if (status === 429) return "The cache was not asked.";
      return `The cache was not asked: ${noneWords(status)}.`;
    default:
      return `The cache says ${cache}.`;
  }
}

function noneWords(status: number): string {
  if (status >= 300 && status < 400) return "a redirect, or what the visitor has is still right";
  if (status >= 500) return "it could not be answered";
  return status >= 400 ? "it was refused, or nothing is there" : "it was answered without it";
}
