// What an ideal cache could have done in the leak hunt: whether any answer that the origin had made, and that the oracle allows, was still of use to a request.

import { usableS, whyNot } from "./leaks-oracle.ts";
import type { Made, Records } from "./leaks-records.ts";
import { choose, ruleAt, ruleFor, type Edition } from "./leaks-rules.ts";
import type { LeakScene } from "./leaks-scene.ts";
import type { LeakRequest } from "./leaks-visitors.ts";
import type { Meaning } from "./leaks-words.ts";

/** Only so many are looked at, the newest first: more would cost more than the answer. */
const lastLooked = 400;

export type Then = {
  readonly asked: LeakRequest;
  /** The rules under which the request was answered. */
  readonly edition: Edition;
  readonly wallMs: number;
  readonly sentMs: number;
  /** What had come from the origin by then counts. */
  readonly untilMs: number;
};

/** Returns whether an ideal cache had an answer to this request in its store. */
export function bestOf(
  records: Records,
  scene: Pick<LeakScene, "edition" | "clears">,
  then: Then,
): boolean {
  const { asked, edition, sentMs, untilMs } = then;
  if (!takesStored(asked)) return false;
  if (ruleAt(edition, choose(edition, asked)).bypass === true) return false;
  const all = records
    .at(asked.domain, asked.path)
    .filter(({ answeredMs }) => answeredMs <= untilMs)
    .slice(-lastLooked);
  // A confirmation makes what is stored young again, and says of it what it says of itself; of which answer is not looked at, which is in favour of the ideal.
  let confirmedMs = 0;
  const said: Meaning[] = [];
  for (let at = all.length - 1; at >= 0; at--) {
    const made = all[at];
    if (made === undefined) continue;
    if (isInvalidation(made, asked) && records.reachedMs(made) < sentMs) return false;
    if (isConfirmation(made)) {
      confirmedMs = Math.max(confirmedMs, made.answeredMs);
      if (made.meaning !== undefined) said.push(made.meaning);
    }
    if (made.method !== "GET" || made.status === 304 || made.meaning === undefined) continue;
    const under = scene.edition(made.domain, made.edition);
    if (under === undefined || isCleared(made, scene)) continue;
    const isUsable = [made.meaning, ...said].some(
      (inForce) =>
        isYoung(made, inForce, confirmedMs, then) &&
        whyNot({ made, edition: under, meaning: made.meaning, inForce }, then) === undefined,
    );
    if (isUsable) return true;
  }
  return false;
}

/** A HEAD is answered like a 304 where it names the same validator. */
const isConfirmation = ({ status, method }: Made): boolean =>
  status === 304 || (method === "HEAD" && status === 200);

/** A successful POST has taken what was stored before, when its visitor has the answer. */
function isInvalidation({ method, status, query }: Made, asked: LeakRequest): boolean {
  return method === "POST" && status < 400 && query === asked.query;
}

function isYoung(
  made: Made,
  inForce: Meaning,
  confirmedMs: number,
  { asked, edition, sentMs }: Then,
): boolean {
  const ageMs = sentMs - Math.max(made.answeredMs, confirmedMs);
  const said = asked.fields.get("cache-control") ?? "";
  // Ages are whole seconds: in its first one an answer suits whoever wants none that is older than 0.
  if (said.includes("max-age=0") && ageMs >= 1_000) return false;
  const graceMs = said.includes("max-stale=60") ? 60_000 : 0;
  return (
    Math.max(0, ageMs) <
    usableS(made, inForce, ruleFor(edition, asked, made.type)) * 1_000 + graceMs
  );
}

/** A visitor who wants a fresh answer is given none that is stored. */
function takesStored({ method, fields }: LeakRequest): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return !(fields.get("cache-control") ?? "").includes("no-cache");
}

function isCleared({ domain, askedMs }: Made, { clears }: Pick<LeakScene, "clears">): boolean {
  return clears.some((one) => one.domain === domain && askedMs < one.sentMs);
}

const historyShown = 15;

/** Returns, for whoever reads of a hit that the ideal cache could not have, what the origin had said of the path before. */
export function historyOf(
  records: Records,
  { asked, edition, sentMs }: Omit<Then, "untilMs">,
  status: string,
): string {
  const { domain, path, method, scheme, target, lines } = asked;
  const before = records.at(domain, path).slice(-historyShown);
  return [
    `beyond the best: ${method} ${scheme}://${domain}${target} ${JSON.stringify(lines)}: ${status}`,
    `by ${JSON.stringify(ruleAt(edition, choose(edition, asked)))}`,
    ...before.map((made) => {
      const ageMs = Math.round(sentMs - made.answeredMs);
      return `${made.no}, ${ageMs} ms before, edition ${made.edition}: ${made.method} ${made.scheme} ?${made.query} of V${made.who}: ${made.status} ${JSON.stringify(made.said)}`;
    }),
  ].join("\n    ");
}
