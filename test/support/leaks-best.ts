// What an ideal cache could have done in the leak hunt: whether any answer that the origin had made before, and that the oracle allows, was still of use to a request.

import { usableS, whyNot } from "./leaks-oracle.ts";
import type { Made, Records } from "./leaks-records.ts";
import { choose, ruleAt } from "./leaks-rules.ts";
import type { LeakScene } from "./leaks-scene.ts";
import type { LeakRequest } from "./leaks-visitors.ts";

/** Only so many are looked at, the newest first: more would cost more than the answer. */
const lastLooked = 150;

/** Returns whether an ideal cache had an answer to this request in its store. */
export function bestOf(
  records: Records,
  scene: Pick<LeakScene, "edition" | "clears">,
  asked: LeakRequest,
  nowMs: number,
): boolean {
  const edition = scene.edition(asked.domain);
  if (edition === undefined || !takesStored(asked)) return false;
  const serving = ruleAt(edition, choose(edition, asked));
  if (serving.bypass === true) return false;
  const all = records.at(asked.domain, asked.path).slice(-lastLooked);
  // A confirmation makes what is stored young again; of which answer is not looked at, which is in favour of the ideal.
  let confirmedMs = 0;
  const graceMs = asked.fields.get("cache-control") === "max-stale=60" ? 60_000 : 0;
  for (let at = all.length - 1; at >= 0; at--) {
    const made = all[at];
    if (made === undefined) continue;
    if (made.status === 304) confirmedMs = Math.max(confirmedMs, made.askedMs);
    if (made.method === "POST" && made.status < 400 && made.query === asked.query) return false;
    if (made.method !== "GET" || made.status === 304 || made.meaning === undefined) continue;
    const youngMs = Math.max(made.askedMs, confirmedMs);
    if (nowMs - youngMs > usableS(made, made.meaning, serving) * 1_000 + graceMs) continue;
    if (asked.fields.has("authorization") && !made.meaning.isForAuthorized) continue;
    const under = scene.edition(made.domain, made.edition);
    if (under === undefined || isCleared(made, scene)) continue;
    if (whyNot({ made, edition: under, meaning: made.meaning }, { asked, edition }) === undefined)
      return true;
  }
  return false;
}

/** A visitor who wants a fresh answer is given none that is stored. */
function takesStored({ method, fields }: LeakRequest): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return !/no-cache|max-age=0/.test(fields.get("cache-control") ?? "");
}

function isCleared({ domain, askedMs }: Made, { clears }: Pick<LeakScene, "clears">): boolean {
  return clears.some((one) => one.domain === domain && askedMs < one.sentMs);
}
