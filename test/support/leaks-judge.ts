// Reads an answer as its visitor got it and asks the oracle of each part of it: the body, the fields, the cookies that it sets.

import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { whyNot, type Under } from "./leaks-oracle.ts";
import type { LeakAnswer } from "./leaks-doors.ts";
import type { Made, Records } from "./leaks-records.ts";
import type { Edition } from "./leaks-rules.ts";
import type { Meaning } from "./leaks-words.ts";

export type Finding = {
  readonly kind: "leak" | "mangled";
  readonly why: string;
  readonly made: Made | undefined;
};

const tokenPattern = /<[^<>]* (\d+)>/g;

/** A clear that a customer was told is applied. */
export type Cleared = {
  readonly domain: string;
  readonly sentMs: number;
  readonly appliedMs: number;
};

export type Judged = Under & {
  readonly answer: LeakAnswer;
  readonly sentMs: number;
  readonly clears: readonly Cleared[];
};

export function judge(
  records: Records,
  editionOf: (made: Made) => Edition | undefined,
  judged: Judged,
): readonly Finding[] {
  const { answer, asked } = judged;
  const findings: Finding[] = [];
  const text = bodyText(answer);
  if (text === undefined)
    return [{ kind: "mangled", why: "the body cannot be decoded", made: undefined }];
  const inBody = sourcesIn([text]);
  const [of] = inBody;
  const body = of === undefined ? undefined : records.of(of);
  if (inBody.length > 1)
    findings.push({ kind: "mangled", why: `parts of answers ${inBody.join(" and ")}`, made: body });
  if (body !== undefined && answer.status === 200 && asked.method === "GET" && text !== body.body)
    findings.push({
      kind: "mangled",
      why: `${text.length} of ${body.body.length} bytes`,
      made: body,
    });
  const cookies = sourcesIn(
    answer.fields.filter(([name]) => name === "set-cookie").map(([, value]) => value),
  );
  for (const no of cookies) {
    const made = records.of(no);
    if (made?.who !== asked.who)
      findings.push({ kind: "leak", why: "a cookie that was set for another", made });
  }
  const inHead = sourcesIn(
    answer.fields.filter(([name]) => name !== "set-cookie").map(([, value]) => value),
  );
  const [last] = sourcesIn(
    answer.fields.filter(([name]) => name === "x-made").map(([, value]) => value),
  );
  const head = last === undefined ? undefined : records.of(last);
  const inForce = (head && meaningIn(records, head)) ?? body?.meaning;
  const isConfirmed =
    head?.who === asked.who && head.status === 304 && head.fields.has("authorization");
  for (const no of new Set([...inBody, ...inHead])) {
    const made = records.of(no);
    const edition = made && editionOf(made);
    if (made === undefined || edition === undefined) {
      findings.push({ kind: "mangled", why: `answer ${no} is not known`, made });
      continue;
    }
    if (made.who === asked.who) continue;
    const meaning = meaningIn(records, made) ?? body?.meaning;
    const why =
      whyNot({ made, edition, meaning, inForce, isConfirmed }, judged) ?? whyCleared(made, judged);
    if (why !== undefined) findings.push({ kind: "leak", why, made });
  }
  return findings;
}

/**
 * Returns what an answer means once it is joined with what it confirms: a 304 leaves in force what it does not say again (RFC 9111 §3.2), and
 * nobody knows here how many came before it. So it may have the permissions of another; prohibitions are its own.
 */
function meaningIn(records: Records, made: Made): Meaning | undefined {
  const { meaning, status, domain, path } = made;
  const says = ({ said }: Made, field: string): boolean =>
    said.some(([name]) => name.toLowerCase() === field);
  const isTold =
    status !== 304 ||
    (says(made, "cache-control") &&
      !records.at(domain, path).some((one) => says(one, "cdn-cache-control")));
  return meaning === undefined || isTold
    ? meaning
    : { ...meaning, isPublic: true, isForAuthorized: true };
}

/** Returns the numbers of the answers that made a part of these texts. */
function sourcesIn(texts: readonly string[]): readonly number[] {
  const found = new Set<number>();
  for (const text of texts) for (const [, no] of text.matchAll(tokenPattern)) found.add(Number(no));
  return [...found];
}

function whyCleared({ askedMs, domain }: Made, { sentMs, clears }: Judged): string | undefined {
  const isCleared = clears.some(
    (one) => one.domain === domain && askedMs < one.sentMs && sentMs > one.appliedMs,
  );
  return isCleared ? "it was cleared" : undefined;
}

function bodyText({ fields, body, status }: LeakAnswer): string | undefined {
  const coding = fields.find(([name]) => name === "content-encoding")?.[1];
  if (coding === undefined || body.length === 0 || status === 206) return body.toString("latin1");
  try {
    switch (coding) {
      case "gzip":
        return gunzipSync(body).toString("latin1");
      case "br":
        return brotliDecompressSync(body).toString("latin1");
      case "zstd":
        return zstdDecompressSync(body).toString("latin1");
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}
