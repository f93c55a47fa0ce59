// What every page is given.

import type { Route } from "./route.ts";

export type PageProps = { readonly route: Route };
