// The settings of the cache where a document says nothing. They are those of the schema (devlove.ts), written
// out by `npm run generate`: workers need them, and would load the schema and its library for them.

import defaults from "./cache-defaults.json" with { type: "json" };
import type { CacheSettings } from "./effective-devlove.ts";

/** The cast is sound: a test holds the file equal to the schema's defaults. */
export const CACHE_DEFAULTS = defaults as CacheSettings;
