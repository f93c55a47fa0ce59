// Asks which cache rule a request meets, in few words.

import type { Field } from "../../src/core/http/http-fields.ts";
import type { CacheRoute } from "../../src/core/serving/cache-route.ts";
import type { SiteRoutes } from "../../src/core/serving/site-routes.ts";

type Asked = {
  readonly query?: string;
  readonly method?: string;
  readonly fields?: readonly Field[];
};

export function ruleMet(
  routes: SiteRoutes,
  rawPath: string,
  { query = "", method = "GET", fields = [] }: Asked = {},
): CacheRoute {
  return routes.cache({ rawPath, rawQuery: query }, { method, fields });
}
