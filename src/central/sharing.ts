// What several centrals must share beside their store, and whether these settings share it.

import { existsSync } from "node:fs";
import { AccelError } from "../core/faults.ts";
import { keyFileOf, type CentralSettings } from "./settings/fields.ts";

/** What lies in a state directory, and the key whose value moves it to where all centrals reach it. */
const sharedBy: readonly (readonly [what: string, key: string])[] = [
  ["files of viewsets, packages and contents of sets", "objects.s3.bucket"],
  ["request logs and their numbers", "request_logs.url"],
];

/** Returns what would be each central's own by these settings, in words that name the key by which it is shared. Pure. */
export function unsharedParts(settings: Readonly<Record<string, unknown>>): readonly string[] {
  return sharedBy.flatMap(([what, key]) =>
    settings[key] === undefined ? [`${what} (\`${key}\` is not set)`] : [],
  );
}

/** Throws SETTINGS_INVALID where several centrals are meant and would not answer alike, and FILE_UNUSABLE where this one would make a key of its own. */
export function refuseUnshared(settings: CentralSettings): void {
  if (settings["store.instances"] !== "many") return;
  const parts = unsharedParts(settings);
  if (parts.length > 0)
    throw new AccelError(
      "SETTINGS_INVALID",
      `\`store.instances: many\` needs everything that a state directory holds where all centrals reach it, and this is not: ${parts.join("; ")}`,
      {
        hint: "Let `store.instances` be `one`, or set what the message names. docs/operations/cluster.md says what works with several centrals.",
      },
    );
  const path = keyFileOf(settings);
  if (!existsSync(path))
    throw new AccelError("FILE_UNUSABLE", `the key file ${path} does not exist`, {
      hint: "All centrals at one store have the same key. Copy it from another one; for a new store make it once, with `openssl rand -hex 32`, readable by central's user only.",
    });
}
