// The defaults of the cache, which are written out for those who have no use of the schema.

import { expect, test } from "vitest";
import { CACHE_DEFAULTS } from "../../../src/core/serving/cache-defaults.ts";
import { SITE_DEFAULTS } from "../../../src/core/serving/effective-devlove.ts";
import { expectGenerated } from "../../support/generated.ts";

test("the defaults of the cache that are written out are those of the schema", () => {
  const { default: derived } = SITE_DEFAULTS.cache;
  expectGenerated(
    "src/core/serving/cache-defaults.json",
    () => `${JSON.stringify(derived, undefined, 2)}\n`,
  );
  if (process.env["UPDATE_CONFIG"] !== "1") expect(CACHE_DEFAULTS).toEqual(derived);
});
