// Warns of hosts that do not obey policies for classes of bots: at the start, then every ten seconds.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { repeatingFromNow } from "../../base/wait.ts";
import { classesUnknown, classesUnknownText } from "../../core/serving/classes-unknown.ts";
import type { Store } from "../store/engine/database.ts";
import { listedForMs } from "../store/journal/proof.ts";
import { refusedClasses, type ClassesRefused } from "../store/journal/refused-classes.ts";

/** The most hosts that the warning names. */
const namedMax = 10;
/** As much of an instance's id as the table of hosts below the warning has. */
const idShown = 8;

export type ClassWarningsDeps = {
  readonly store: Store;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly now: () => Date;
  readonly log: Log;
  readonly intervalMs?: number;
};

/** Starts the job. Disposing waits for the look under way. */
export function startClassWarnings(deps: ClassWarningsDeps): AsyncDisposable {
  const { store, health, now, log, intervalMs = 10_000 } = deps;
  const run = async (): Promise<void> => {
    const seenSince = new Date(now().getTime() - listedForMs).toISOString();
    const hosts = await refusedClasses(store, { seenSince });
    const { code, severity, hint } = classesUnknown;
    if (hosts.length === 0) health.settle(code);
    else health.raise(code, severity, warningText(hosts), hint);
  };
  const onError = (error: unknown): void =>
    log.error({ err: error }, "it is not known which hosts obey policies for classes of bots");
  return repeatingFromNow(intervalMs, run, { onError });
}

function warningText(hosts: readonly ClassesRefused[]): string {
  const rest = hosts.length - namedMax;
  const names = [
    ...hosts
      .slice(0, namedMax)
      .map(({ name16, instanceId }) => `${instanceId.slice(0, idShown)} of ${name16}`),
    ...(rest > 0 ? [`${rest} more`] : []),
  ].join(", ");
  return classesUnknownText(hosts.length, names);
}
