// What several centrals must share beside their store, and whether these settings share it.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { AccelError } from "../core/faults.ts";
import { dayOf, inDatabaseMark, readInDatabase } from "./agents/log-files.ts";
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
  refuseOwnDays(settings);
  const path = keyFileOf(settings);
  if (!existsSync(path))
    throw new AccelError("FILE_UNUSABLE", `the key file ${path} does not exist`, {
      hint: "All centrals at one store have the same key. Copy it from another one; for a new store make it once, with `openssl rand -hex 32`, readable by central's user only.",
    });
}

const dayMs = 86_400_000;

/** Throws SETTINGS_INVALID where request logs of before lie in files of this central, which another one would answer without. */
function refuseOwnDays(settings: CentralSettings): void {
  const directory = join(settings.state_dir, "logs");
  if (!existsSync(directory)) return;
  const days = readdirSync(directory)
    .flatMap((name) => dayOf(name) ?? [])
    .toSorted();
  const [first, last] = [days.at(0), days.at(-1)];
  if (first === undefined || last === undefined) return;
  const endsMs = Date.parse(last) + dayMs + settings["logs.retention_age"];
  const end = new Date(endsMs).toISOString().slice(0, 10);
  const taken =
    readInDatabase(directory) === undefined
      ? `start central once with \`instances: one\` and \`request_logs.url\`, until ${join(directory, inDatabaseMark)} is there (what agents were told is in the database then), stop it, and `
      : "";
  throw new AccelError(
    "SETTINGS_INVALID",
    `\`store.instances: many\` needs request logs where all centrals reach them, and ${days.length} ${days.length === 1 ? "day" : "days"} of before (${first} to ${last}) lie in files of ${directory}: other centrals would answer without them`,
    {
      hint: `No command moves them into the database. Either let \`store.instances\` be \`one\` until \`logs.retention_age\` has removed the last of them, after ${end} at the latest; or do without these days: ${taken}move their files (\`${first}.db\` and so on) out of ${directory}, and leave what else lies there.`,
    },
  );
}
