// Looks, behind a start, whether blobs and packages are where the settings say. Who names another bucket, or mounts another disk, is told so then, and not by the first agent that asks.

import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { repeatingFromNow } from "../base/wait.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import {
  namedAndMissing,
  type NamedLook,
  type NamedObject,
} from "./store/objects/named-objects.ts";

export type ObjectsLook = NamedLook & {
  /** Names the place. */
  readonly where: string;
};

const elsewhereHint =
  "Name the bucket or directory that has it, in central.yaml or by a mount. If it is the right one, it lost that object: bring it back from a backup, a version or a replica.";

/** Throws OBJECTS_MISPLACED where the newest that the store names is not there, and what `isThere` throws. */
export async function refuseMissing(look: ObjectsLook): Promise<void> {
  const missing = await namedAndMissing(look);
  if (missing !== undefined)
    throw new AccelError("OBJECTS_MISPLACED", missingText(look.where, missing), {
      hint: elsewhereHint,
    });
}

function missingText(where: string, { kind, place }: NamedObject): string {
  return `${where} lacks ${place}, the newest ${kind} that the store names: it is another place than the store's, or it lost that`;
}

export type LookDeps = {
  readonly health: Pick<Health, "raise" | "settle">;
  readonly log: Log;
  readonly lookMs?: number;
};

/** Looks until all is there once, and warns while it is not. Nobody waits for it: the place may be away. */
export function lookForNamed(
  look: ObjectsLook,
  { health, log, lookMs = 30_000 }: LookDeps,
): AsyncDisposable {
  let isWhole = false;
  let told: string | undefined;
  const once = async (): Promise<void> => {
    if (isWhole) return;
    const missing = await namedAndMissing(look);
    if (missing === undefined) {
      isWhole = true;
      if (told === undefined) return;
      health.settle("objects_misplaced");
      log.info({ objects: look.where }, "the newest blob and package are where the settings say");
      return;
    }
    const text = missingText(look.where, missing);
    health.raise("objects_misplaced", "error", text, elsewhereHint);
    if (told !== missing.place) log.error({ objects: look.where, place: missing.place }, text);
    told = missing.place;
  };
  return repeatingFromNow(lookMs, once, {
    onError: (error) =>
      log.debug({ reason: messageOf(error) }, "blobs and packages cannot be looked for now"),
  });
}
