// The spellings of names in published agents, which are derived before the program runs.

import { test } from "vitest";
import { AgentText } from "../../../../src/agent/bots/unreviewed/agent-tokens.ts";
import { CrawlerNames, knownCrawlers } from "../../../../src/agent/bots/unreviewed/crawlers.ts";
import { nameIn } from "../../../../src/agent/bots/unreviewed/user-agents.ts";
import { expectGenerated } from "../../../support/generated.ts";
import { publishedAgents } from "../../../support/published-agents.ts";

test("the published spellings are those of the agents that the package knows", () => {
  const names = new CrawlerNames();
  const rows = new Map<string, string>();
  for (const agent of publishedAgents) {
    const found = names.find(agent);
    if (found === undefined) continue;
    const name = nameIn(new AgentText(agent), found, names) ?? found.crawler.name;
    // The first crawler that is spelled so has the name.
    if (!rows.has(name)) rows.set(name, `${knownCrawlers().indexOf(found.crawler)} ${name}`);
  }
  expectGenerated("src/agent/bots/unreviewed/published-names.json", () =>
    JSON.stringify([...rows.values()], undefined, 0)
      .replaceAll('","', '",\n"')
      .concat("\n"),
  );
});
