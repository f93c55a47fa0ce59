// Agents that crawlers were seen with.

import list from "crawler-user-agents";

/** The agents of all crawlers of the package, crawler by crawler. */
export const publishedAgents: readonly string[] = list.flatMap(({ instances }) => instances);
