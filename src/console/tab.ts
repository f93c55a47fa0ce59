// What every tab of a domain's pages is given.

import type { Route } from "./route.ts";

export type TabProps = { readonly domain: string; readonly route: Route };
