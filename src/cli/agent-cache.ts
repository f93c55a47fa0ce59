// `accel-agent cache`: what is cached, and clearing it from the host itself, with the same proof as from central.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command, unknownVerb } from "../base/command.ts";
import { clearNames, clearOptions, clearUsage, neededNames } from "./clear-options.ts";
import { ask, agentOptions, agentUsage, renderFacts, socketPath } from "./control.ts";

/** The most arguments: 64 patterns, and the verb and the domain before them. */
const positionalsMax = 66;

export const cacheCommand: Command = {
  summary:
    "Searches the cache by FTS5 patterns, and clears it by them and by URLs, prefixes, tags and hosts; patterns are over path, query, mime, kind, url, dir, ext, param and tag; shows its figures; checks its index.",
  usage: [
    "accel-agent cache search DOMAIN PATTERN… [--limit N]",
    "accel-agent cache clear DOMAIN --url URL… [--prefix PATH…] [--tag TAG…] [--host HOST…] [--soft] [--dry-run]",
    "accel-agent cache clear DOMAIN --everything [--soft] [--dry-run]",
    "accel-agent cache clear DOMAIN PATTERN… [--soft] [--dry-run]",
    "accel-agent cache stats",
    "accel-agent cache check",
    "",
    clearUsage,
    "  --limit N         entries shown by search (default 50)",
    "  --dry-run         count and sample what the clear would hit; nothing is cleared",
    agentUsage,
    "",
    "The name of a main domain includes its sub-domains; the name of a sub-domain means that one only.",
    "A pattern is an FTS5 query, e.g. 'url:z2fcssz2f*' (all under /css/), 'ext:css', 'mime:\"image png\"', 'kind:generated';",
    "docs/clear-cache.md has a table of them.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      {
        ...agentOptions,
        ...clearOptions,
        limit: { type: "string" },
        "dry-run": { type: "boolean" },
      },
      positionalsMax,
    );
    const [verb, domain, ...patterns] = positionals;
    const parameters = parametersOf(verb, domain, patterns, values);
    const answer = await ask(
      socketPath("accel-agent", values),
      `cache-${verb}`,
      parameters,
      context,
    );
    context.out(
      values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderFacts(answer),
    );
    if (verb === "check" && Object(answer)["ok"] !== true)
      throw new AccelError("INDEX_BROKEN", "the cache index has problems");
  },
};

type Values = Parameters<typeof clearNames>[0] & {
  readonly limit?: string | undefined;
  readonly "dry-run"?: boolean | undefined;
};

function parametersOf(
  verb: string | undefined,
  domain: string | undefined,
  patterns: readonly string[],
  { limit, "dry-run": isDry, ...given }: Values,
): unknown {
  const isDryRun = isDry === true;
  if (isDryRun && verb !== "clear")
    throw new AccelError("USAGE", "--dry-run goes with cache clear only");
  if (limit !== undefined && verb !== "search")
    throw new AccelError("USAGE", "--limit goes with cache search only");
  if (verb !== "clear" && (given.soft === true || clearNames(given, []) !== undefined))
    throw new AccelError(
      "USAGE",
      "--url, --prefix, --tag, --host, --everything and --soft go with cache clear only",
    );
  switch (verb) {
    case "search":
      if (domain === undefined || patterns.length === 0)
        throw new AccelError("USAGE", "cache search takes a domain and at least one pattern");
      return { domain, patterns, limit };
    case "clear":
      if (domain === undefined) throw new AccelError("USAGE", "cache clear takes a domain");
      return { domain, ...neededNames(given, patterns, "cache clear"), dry_run: isDryRun };
    case "stats":
    case "check":
      if (domain !== undefined) throw new AccelError("USAGE", `cache ${verb} takes no arguments`);
      return {};
    default:
      throw unknownVerb("cache", verb, ["search", "clear", "stats", "check"]);
  }
}
