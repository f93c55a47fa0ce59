// accel-central: the commands that run it and check its settings. parts.ts has its parts and their order.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { readArgs, type Command } from "../base/command.ts";
import { refuseSilent } from "../base/control-socket.ts";
import { Health } from "../base/health.ts";
import { createLog, type Log } from "../base/log.ts";
import { createSdNotify, type SdNotify } from "../base/sd-notify.ts";
import { openKeyFile } from "../base/seal.ts";
import {
  reloadHelp,
  unknownKeysHelp,
  reloadOption,
  checkedSettings,
  loadKnownSettings,
  reloadSettings,
  tellUnknown,
  warnUnknown,
} from "../base/settings-file.ts";
import { listenText } from "../base/settings-fields.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { every, once } from "../base/wait.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import { refuseUnfinished } from "./backup/restore-backup.ts";
import { describedText } from "./api/http/described.ts";
import { createDoor } from "./front.ts";
import { mailPassword } from "./notices.ts";
import { bucketPlace, tryObjects, tryObjectsPlace } from "./objects-opening.ts";
import { tryJoin } from "./others.ts";
import { openCentral, type Central, type CentralOptions } from "./parts.ts";
import { logsText, tryLogs } from "./request-logs.ts";
import { readAuthority } from "./settings/authority.ts";
import { centralFields, keyFileOf, type CentralSettings } from "./settings/fields.ts";
import { refuseUnshared } from "./sharing.ts";
import { endBehind } from "./stop-end.ts";
import { postgresPlace, storeText, tryStore } from "./store-opening.ts";

export { backupCommand, restoreCommand } from "./backup-command.ts";
export { migrateCommand } from "./migrate-command.ts";
export { objectsCommand } from "./objects-command.ts";
export { rekeyCommand } from "./rekey.ts";

const configOption = {
  config: { type: "string", default: "/etc/accel-central/central.yaml" },
} as const;
const usageOptions = "  --config FILE     settings (default /etc/accel-central/central.yaml)";

export const serveCommand: Command = {
  summary:
    "Runs the service until it is told to stop (SIGTERM, SIGINT). SIGHUP reloads the settings that can change while it runs.",
  usage: `accel-central serve [options]\n\n${usageOptions}`,
  async run({ args, version, env, stop, onReload }) {
    const { values } = readArgs(args, configOption);
    const { settings, unknown } = loadKnownSettings(centralFields, values.config);
    const log = createLog("accel-central", settings.log_level);
    tellUnknown(log, unknown);
    const health = new Health(() => new Date());
    warnUnknown(health, unknown, values.config);
    const notify = createSdNotify(env);
    onReload(() =>
      reloadSettings(notify, log, {
        table: centralFields,
        path: values.config,
        running: settings,
        health,
        apply: ({ log_level }) => {
          log.level = log_level;
          return { log_level };
        },
      }),
    );
    await runCentral(settings, { version, stop, log, notify, health });
  },
};

export const centralCheckCommand: Command = {
  summary:
    "Checks the settings file and the key file; tries each PostgreSQL and the bucket, where `store.url`, `request_logs.url` and `objects.s3` name them. Reports every error of the file with line, key and reason.",
  usage: `accel-central check [options]\n\n${usageOptions}\n${reloadHelp}\n\n${unknownKeysHelp}`,
  async run({ args, out, stop }) {
    const { values } = readArgs(args, { ...configOption, ...reloadOption });
    const settings = checkedSettings(centralFields, values, out);
    // Nobody hears of a signal whether it was heeded.
    if (values.reload) await refuseSilent(join(settings.state_dir, "control.sock"), { stop });
    await checkCentral(settings);
    await tryServers(settings, out);
    out(`${values.config}: valid\n`);
  },
};

/** Tries each server, also where one before it failed; says what each `ask` returned in words. Throws what the first that failed throws; what the others threw is told. */
async function tryServers(settings: CentralSettings, out: (text: string) => void): Promise<void> {
  const failed: AccelError[] = [];
  const tried = async (ask: () => Promise<unknown>): Promise<void> => {
    try {
      const said = await ask();
      if (typeof said === "string") out(`${said}\n`);
    } catch (error) {
      if (!(error instanceof AccelError)) throw error;
      failed.push(error);
    }
  };
  await tried(async () => {
    const server = await tryStore(settings, async (store) => {
      // Another place than that of the others lacks what the store names as well, and which setting leads there is known by this.
      await tried(async () => tryJoin(settings));
      await tryObjectsPlace(settings, store);
    });
    return server && `${storeText(settings)}: ${server} can hold the store`;
  });
  await tried(async () => {
    const bucket = await tryObjects(settings);
    return bucket && `${bucket}: can hold blobs and packages`;
  });
  await tried(async () => {
    const server = await tryLogs(settings);
    return server && `${logsText(settings)}: ${server} can hold request logs`;
  });
  const [first, ...others] = failed;
  for (const { message, hint } of others) out(`${message}\n  ${hint}\n`);
  if (first !== undefined) throw first;
}

export const openApiCommand: Command = {
  summary: "Prints the OpenAPI 3.1 document of the customer API.",
  usage: "accel-central openapi",
  async run({ args, out }) {
    readArgs(args, {});
    out(describedText());
  },
};

/**
 * Checks the files. Throws SETTINGS_INVALID for several centrals that would not share what they must, and FILE_UNUSABLE for a key file, a password file or an authority that cannot be used. A key file
 * that does not exist is made at the first start.
 */
export async function checkCentral(settings: CentralSettings): Promise<void> {
  refuseUnshared(settings);
  const keyFile = keyFileOf(settings);
  if (existsSync(keyFile)) await openKeyFile(keyFile);
  mailPassword(settings);
  readAuthority(settings.ca_file);
  postgresPlace(settings)?.password();
  bucketPlace(settings)?.accessKey?.();
}

export type RunOptions = {
  readonly version: string;
  readonly stop: AbortSignal;
  readonly log: Log;
  readonly notify?: SdNotify;
  readonly health?: Health;
  /** Called once, when requests are answered. */
  readonly ready?: (central: { readonly port: number }) => void;
};

type Serving = Required<Pick<RunOptions, "stop" | "notify">> & {
  readonly ready: RunOptions["ready"];
};

/**
 * Runs central. Returns when it is stopped and everything is closed. Throws an AccelError if it cannot start, and if it must stop by itself: then it is closed as
 * well.
 */
export async function runCentral(
  settings: CentralSettings,
  { version, stop, log, notify = createSdNotify({}), health, ready }: RunOptions,
): Promise<void> {
  refuseUnshared(settings);
  using _ = lockStateDir(settings.state_dir);
  refuseUnfinished(settings.state_dir);
  const now = (): Date => new Date();
  await using door = createDoor();
  const options = { settings, version, log, now, door, health: health ?? new Health(now) };
  /** When it was opened anew last. */
  let opened = -Infinity;
  let lost = await serve(options, { stop, notify, ready });
  while (lost !== undefined) {
    if (performance.now() - opened < livedMs) throw lost;
    log.warn({ reason: messageOf(lost) }, "central is opened anew");
    options.health.settleAllBut(["settings_unknown"]);
    opened = performance.now();
    lost = await serve(options, { stop, notify, ready: undefined });
  }
}

/** A central that must be opened anew sooner than this ends: its supervisor has patience for servers that take turns. */
const livedMs = 5_000;

/** Serves until it is told to stop, or must be opened anew: then it returns why. Everything is closed when it returns. Throws what `runCentral` throws. */
async function serve(
  options: Omit<CentralOptions, "stop" | "cut" | "late" | "fail" | "reopen">,
  { stop: asked, notify, ready }: Serving,
): Promise<AccelError | undefined> {
  const { settings, log, door } = options;
  const failed = new AbortController();
  const outdated = new AbortController();
  const stop = AbortSignal.any([asked, failed.signal, outdated.signal]);
  let lost: AccelError | undefined;
  const reopen = (error: AccelError): void => {
    lost = error;
    outdated.abort(error);
  };
  const fail = (error: AccelError): void => failed.abort(error);
  const late = new AbortController();
  using end = endBehind(stop, { onLate: (ms) => log.warn({ waited_ms: ms }, lateText) });
  const ends = { stop, cut: end.signal, late };
  await using central = await openCentral({ ...options, ...ends, fail, reopen });
  const listen = listenText({ ...settings.listen, port: central.port });
  ready?.({ port: central.port });
  await notify.send("READY=1", `STATUS=listening on ${listen}`);
  log.info({ listen, base_url: settings.base_url, state_dir: settings.state_dir }, "serving");
  const watchdog = feedWatchdog(central, notify, log, stop);
  await once(stop);
  const isOver = asked.aborted || failed.signal.aborted;
  if (!isOver) door.keep();
  await notify.send(isOver ? "STOPPING=1" : "STATUS=opening the store anew");
  log.info({ reason: messageOf(stop.reason) }, "stopping");
  await watchdog;
  failed.signal.throwIfAborted();
  return asked.aborted ? undefined : lost;
}

const lateText =
  "the stop still waited for PostgreSQL: its connections are ended, and whoever is behind them is answered 503";

/**
 * Feeds the watchdog, but only while the log threads answer; by feeding, this thread shows that it lives.
 * Three feeds fit into one period.
 */
async function feedWatchdog(
  central: Central,
  notify: SdNotify,
  log: Log,
  stop: AbortSignal,
): Promise<void> {
  if (notify.watchdogMs === undefined) return;
  const periodMs = notify.watchdogMs / 3;
  const feed = async (): Promise<void> => {
    await central.probe(periodMs);
    await notify.send("WATCHDOG=1");
  };
  await every(periodMs, feed, {
    stop,
    onError: (error) => log.error({ err: error }, "the watchdog is not fed"),
  });
}
