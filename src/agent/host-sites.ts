// The sites that lie on this host (the setting `sites`). They need nothing of the state directory: a start reads them while its threads load their code, and a
// successor before it takes anything, so that visitors wait for none of it.

import { Topic } from "../base/topic.ts";
import type { AgentSettings } from "./settings/fields.ts";
import { LinkedDomains } from "./steering/serving.ts";
import { listenersOf, ownListenerGuard } from "./own-listeners.ts";
import { openLocalSites, type LocalSites, type LocalSitesOptions } from "./viewset/local-sites.ts";

export type HostSites = AsyncDisposable & {
  readonly locals: LocalSites;
  readonly linked: LinkedDomains;
  /** Tells the domain whose devlove on this host is another one now. */
  readonly changes: Topic<string>;
};

/** Resolves when each site was read once. Its disposal may be called more than once. */
export async function openHostSites(
  settings: AgentSettings,
  common: Pick<LocalSitesOptions, "health" | "log" | "stop" | "registry">,
): Promise<HostSites> {
  const { log } = common;
  const linked = new LinkedDomains();
  const changes = new Topic<string>();
  await using stack = new AsyncDisposableStack();
  const locals = stack.use(
    await openLocalSites({
      sites: settings.sites,
      watchViews: settings.watch_views,
      names: (domain) => linked.names(domain),
      backendRules: { backendGuard: ownListenerGuard(listenersOf(settings)) },
      onChange: (domain) => changes.tell(domain),
      onViews: (domain, paths) =>
        log.debug({ domain, files: paths?.length }, "views changed on this host"),
      ...common,
    }),
  );
  const owned = stack.move();
  return {
    locals,
    linked,
    changes,
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}
