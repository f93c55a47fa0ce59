// `accel-agent cache`: what is cached, and clearing it from the host itself, with the same proof as from central.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";

export const cacheCommand: Command = {
  summary:
    "Searches and clears the cache by FTS5 patterns over path, query, mime and kind; shows its figures; checks its index.",
  usage: [
    "accel-agent cache search DOMAIN PATTERN [--limit N]",
    "accel-agent cache clear DOMAIN PATTERN…",
    "accel-agent cache stats",
    "accel-agent cache check",
    "",
    "  --limit N         entries shown by search (default 50)",
    controlUsage,
    "",
    "A pattern is an FTS5 query, e.g. 'path:\"assets img\"', 'mime:\"image png\"', 'kind:generated'.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      { ...controlOptions, limit: { type: "string" } },
      66,
    );
    const [verb, domain, ...patterns] = positionals;
    const parameters = parametersOf(verb, domain, patterns, values.limit);
    const answer = await ask(
      socketPath("accel-agent", values),
      `cache-${verb}`,
      parameters,
      context,
    );
    context.out(
      values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderFacts(answer),
    );
  },
};

function parametersOf(
  verb: string | undefined,
  domain: string | undefined,
  patterns: readonly string[],
  limit: string | undefined,
): unknown {
  switch (verb) {
    case "search":
      if (domain === undefined || patterns.length !== 1)
        throw new AccelError("USAGE", "cache search takes a domain and one pattern");
      return { domain, pattern: patterns[0], limit };
    case "clear":
      if (domain === undefined || patterns.length === 0)
        throw new AccelError("USAGE", "cache clear takes a domain and at least one pattern");
      return { domain, patterns };
    case "stats":
    case "check":
      if (domain !== undefined) throw new AccelError("USAGE", `cache ${verb} takes no arguments`);
      return {};
    default:
      throw new AccelError("USAGE", `cache ${verb ?? ""}: one of search, clear, stats, check`);
  }
}
