// `accel-agent why`: for a URL, what a request would meet, what is cached, and when and why an entry went;
// for an address or a decision, the verdict and why.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command } from "../base/command.ts";
import { ask, agentOptions, agentUsage, socketPath } from "./control.ts";
import { checkedText, decidedText, type Checked, type Decided } from "./visitor-text.ts";

export const whyCommand: Command = {
  summary:
    "For a URL: whether it is cached, what would happen to a request for it, and when and why an entry went. For an address: what happens to its requests, and why. For a decision: what was decided about whom, and why.",
  usage: [
    "accel-agent why URL [--cookie COOKIE]",
    "accel-agent why IP [--ua UA] [--domain DOMAIN]",
    "accel-agent why DECISION",
    "",
    "  URL               as visitors ask for it, e.g. https://www.example.com/blog/?page=2; without a scheme it is asked in the one that the site serves",
    "  IP                address of a visitor: what would happen now on each host, and the last decisions about it",
    "  DECISION          the X-Accel-Decision of an answer (403 or 429), 16 hexadecimal digits",
    "  --cookie COOKIE   with a URL: what would happen to a request with this Cookie field, such as 'sid=1; _ga=2'",
    "  --ua UA           user agent of the visitor, with an IP",
    "  --domain DOMAIN   one domain or sub-domain only, with an IP",
    agentUsage,
    "",
    "What went is remembered of the last 50,000 entries. Decisions are blocks, requests that were too many, and what monitor mode let through: the last 100,000 since the agent's start.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      {
        ...agentOptions,
        ua: { type: "string" },
        domain: { type: "string" },
        cookie: { type: "string" },
      },
      1,
    );
    const [about] = positionals;
    if (about === undefined)
      throw new AccelError("USAGE", "why takes a URL, an IP address or a decision");
    const answer = await ask(
      socketPath("accel-agent", values),
      "why",
      { about, user_agent: values.ua, domain: values.domain, cookie: values.cookie },
      context,
    );
    context.out(values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : textOf(answer));
  },
};

/** The shapes are what agent/why.ts and agent/why-visitor.ts make. */
function textOf(answer: unknown): string {
  const facts = answer as Why | Checked | Decided;
  if ("url" in facts) return render(facts);
  return "decision" in facts ? decidedText(facts) : checkedText(facts);
}

type Clear = {
  readonly clear_no: number;
  readonly clear_id: string;
  readonly at: string;
  readonly by: string;
  readonly of: string;
  readonly patterns: readonly string[] | "everything";
  readonly soft?: boolean;
  readonly widened?: boolean;
};
type Why = {
  readonly url: string;
  readonly a_plain_get: {
    readonly serves: string;
    readonly cache: string;
    readonly text: string;
    readonly cookies?: string;
  };
  /** Stated where the URL asks for a picture in a listed width: it is the same response. */
  readonly picture_width?: number;
  /** The rules of limits.requests, and of limits.bytes, that the path meets; not stated where there are none. */
  readonly limits?: readonly { readonly rule: string; readonly mode: string }[];
  readonly bytes?: { readonly rate_bytes_s: number; readonly after_bytes: number };
  /** Names with + where they are set and - where they are removed; agents of older releases do not state it. */
  readonly rule_headers?: {
    readonly response: readonly string[];
    readonly request: readonly string[];
  };
  /** Rules that answers of these media types have instead; not stated where there are none. */
  readonly rules_by_media_type?: readonly {
    readonly media_type: readonly string[];
    readonly rule_headers?: Why["rule_headers"];
  }[];
  readonly cached: readonly {
    readonly id: number;
    readonly kind: string;
    readonly status: number;
    readonly mime: string;
    readonly coding: string | null;
    readonly size: number;
    readonly vary: Readonly<Record<string, string>> | null;
    readonly stored_at: string;
    readonly fresh_until: string | null;
    readonly is_fresh: boolean;
    /** Stated where a soft clear has made it stale. */
    readonly softly_cleared_at?: string;
    readonly source_no: number;
    readonly servable: boolean;
    /** Agents of older releases do not state it. */
    readonly confirmed?: boolean;
    readonly of_another_rule: boolean;
    /** The media types by which the entry has its rule. */
    readonly rule_media_types?: readonly string[];
    /** Of a picture, where the site optimizes images: in which formats and widths visitors may get it, or why in none. */
    readonly image_variants?: string;
  }[];
  readonly departed: readonly {
    readonly at: string;
    readonly mime: string;
    readonly reason: string;
    readonly clear?: Clear;
  }[];
  readonly clears: {
    readonly matching: readonly Clear[];
    readonly not_matching: readonly Clear[];
    readonly mime_known: boolean;
  };
  readonly known_since: { readonly at: string; readonly because: string } | null;
};

function render(said: Why): string {
  const { url, a_plain_get: met, rule_headers: headers, cached, departed, clears } = said;
  const { known_since, rules_by_media_type: typed = [] } = said;
  const lines = [
    url,
    `  a ${met.cookies === undefined ? "plain GET" : "GET with these cookies"}  ${met.serves}, cache: ${met.cache} (${met.text})`,
    ...(said.picture_width === undefined
      ? []
      : [`  a picture, ${said.picture_width} pixels wide: cached as the URL without the width`]),
    ...limitLines(said),
    ...headerLines(headers),
    ...typed.flatMap(({ media_type: types, rule_headers: own }) => [
      `  answers of ${types.join(", ")} have a rule of their own`,
      ...headerLines(own).map((line) => `  ${line}`),
    ]),
    ...section("cached now", "not cached", cached, entryLines),
    ...section("what went", "nothing known", departed, ({ at, mime, reason, clear }) => [
      `${at}  ${mime}  ${reason}`,
      ...(clear === undefined ? [] : [`  by ${clearLine(clear)}`]),
    ]),
    ...section("clears that match it", "none", clears.matching, (clear) => [clearLine(clear)]),
    ...section("clears that do not", "none", clears.not_matching, (clear) => [clearLine(clear)]),
  ];
  if (!clears.mime_known && clears.not_matching.length > 0)
    lines.push("  (its media type is not known: patterns that name one are taken not to match)");
  if (known_since !== null)
    lines.push(`  nothing is known from before ${known_since.at}: ${known_since.because}`);
  return `${lines.join("\n")}\n`;
}

function limitLines({ limits = [], bytes }: Why): readonly string[] {
  return [
    ...limits.map(
      ({ rule, mode }) =>
        `  limit of requests  ${rule}${mode === "monitor" ? ", mode monitor" : ""}`,
    ),
    ...(bytes === undefined
      ? []
      : [`  limit of bytes  ${bytes.rate_bytes_s} a second behind the first ${bytes.after_bytes}`]),
  ];
}

const noHeaders = { response: [], request: [] };

function headerLines({
  response,
  request,
}: NonNullable<Why["rule_headers"]> = noHeaders): readonly string[] {
  const line = (of: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`  the rule changes headers of the ${of}: ${names.join(" ")}`];
  return [...line("answer", response), ...line("request to the origin", request)];
}

function section<T>(
  title: string,
  none: string,
  items: readonly T[],
  linesOf: (item: T) => readonly string[],
): readonly string[] {
  if (items.length === 0) return [`  ${title}: ${none}`];
  return [`  ${title}:`, ...items.flatMap(linesOf).map((line) => `    ${line}`)];
}

function entryLines(entry: Why["cached"][number]): readonly string[] {
  const coding = entry.coding === null ? "" : ` ${entry.coding}`;
  const { softly_cleared_at: softened } = entry;
  const since = softened === undefined ? "" : `, softly cleared ${softened}`;
  const age = entry.is_fresh ? "fresh" : `stale${since}`;
  const doubt = entry.confirmed === false ? ", not used before the origin confirms it" : "";
  const state = entry.servable ? `${age}${doubt}` : "not servable";
  const rule = entry.of_another_rule
    ? ", not used: stored under another rule for query, cookies or headers"
    : "";
  const until = entry.fresh_until === null ? "" : `, fresh until ${entry.fresh_until}`;
  const { [schemeKey]: scheme, ...fields } = entry.vary ?? {};
  const by = scheme === undefined ? "" : ` by ${schemeText(scheme)}`;
  const vary = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  const varied = vary.length === 0 ? "" : ` with ${vary.join("; ")}`;
  return [
    `entry ${entry.id}  ${entry.kind} ${entry.status} ${entry.mime}${coding}, ${entry.size} bytes, ${state}${rule}`,
    `  stored ${entry.stored_at}${until}, source behind clear ${entry.source_no}`,
    ...(entry.rule_media_types === undefined
      ? []
      : [`  under the rule for answers of ${entry.rule_media_types.join(", ")}`]),
    ...(entry.image_variants === undefined ? [] : [`  image variants: ${entry.image_variants}`]),
    ...(by + varied === "" ? [] : [`  for requests${by}${varied}`]),
  ];
}

/** Under this name the cache keeps by which scheme an answer was asked for, and the port where that is not the scheme's own: `http:8080`. */
const schemeKey = "x-forwarded-proto";

function schemeText(kept: string): string {
  const [scheme = kept, port] = kept.split(":");
  return port === undefined ? scheme : `${scheme} at port ${port}`;
}

function clearLine({ clear_no, clear_id, at, by, of, patterns, soft, widened }: Clear): string {
  const what = patterns === "everything" ? patterns : patterns.join("  ");
  const wide = widened === true ? ", widened to everything" : "";
  const kind = soft === true ? "soft clear" : "clear";
  return `${kind} ${clear_no} (${clear_id}) at ${at}, given by ${by}, of ${of}: ${what}${wide}`;
}
