// By which filter of the logs the requests of a most frequent key are found. Pure.

import type { TopListName } from "../wire/customer/analytics.ts";
import type { Filter } from "./logs-filter.ts";

/** Longer paths are counted by their beginning. */
const pathCharsKept = 300;

export function filterOfTop(by: TopListName, key: string): Filter {
  switch (by) {
    case "top_paths":
      return pathFilter(key);
    case "top_status_paths": {
      const [status = "", path = ""] = key.split(/ (.*)/s);
      return { status, ...pathFilter(path) };
    }
    case "top_bots":
      return { bot: key };
    case "top_addresses":
      return { address: key };
    default:
      return by satisfies never;
  }
}

function pathFilter(path: string): Filter {
  return path.length >= pathCharsKept ? { path } : { path_is: path };
}
