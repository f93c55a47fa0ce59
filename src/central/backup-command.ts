// `accel-central backup` and `restore`: what is read and written beside a running central, or without one.
// backup/ has the steps.
//
// A running central is asked over its control socket to hold off the removal of files; this process does the
// copying. If none runs, the lock of the state directory keeps one from starting meanwhile.

import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { callControl } from "../base/control-socket.ts";
import { loadSettings } from "../base/settings-file.ts";
import { createSealer, openKeysOfFile } from "../base/seal.ts";
import { openSqlite } from "../base/sqlite.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { AccelError, codeOf } from "../core/faults.ts";
import { restoredMark } from "./agents/log-files.ts";
import { drillRestore, type DrillFacts, type OpenedStore } from "./backup/drill-restore.ts";
import { restoreBackup, type RestoreFacts } from "./backup/restore-backup.ts";
import { writeBackup, type BackupFacts, type StoredFacts } from "./backup/write-backup.ts";
import { centralFields, keyFileOf, type CentralSettings } from "./settings/fields.ts";
import { refuseMovedFile } from "./store-opening.ts";
import { blobPages } from "./store/content/blob-rows.ts";
import { rowCount } from "./store/engine/counts.ts";
import { openReader, openStore, storeEpoch, type Store } from "./store/engine/database.ts";
import { placeOfObjects } from "./store/objects/objects-place.ts";
import { storedPackages } from "./store/packages/packages.ts";
import { noteRestore } from "./store/engine/restores.ts";
import { openStoreKey } from "./store/engine/store-key.ts";
import { openAllSealed } from "./store/sealed-columns.ts";

const configOption = {
  config: { type: "string", default: "/etc/accel-central/central.yaml" },
  json: { type: "boolean" },
} as const;
const usageOptions =
  "  --config FILE     settings (default /etc/accel-central/central.yaml)\n  --json            facts as JSON";

export const backupCommand: Command = {
  summary:
    "Backs up central, running or stopped: store, blobs, packages and request logs, into a new directory that is complete or does not exist.",
  usage: [
    "accel-central backup DIR [options]",
    "",
    "  DIR               must not exist; on the disk of the state directory blobs are linked, elsewhere copied",
    "  --with-key        include the key file: whoever has such a backup can read every secret in it",
    usageOptions,
    "",
    "Exit status: 0 everything is backed up, 1 failed, 2 bad usage or settings, 3 there is a backup, but it is NOT WHOLE or THE KEY IS MISSING.",
    "docs/operations/backup.md says what is in a backup, and how to restore it.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      { ...configOption, "with-key": { type: "boolean" } },
      1,
    );
    const [directory] = positionals;
    if (directory === undefined) throw new AccelError("USAGE", "backup takes a directory");
    const settings = loadSettings(centralFields, values.config);
    refuseOnPostgres(settings, "backed up");
    refuseMovedFile(settings.state_dir);
    const keyFile = keyFileOf(settings);
    await using held = await hold(settings, context.stop);
    const facts = await writeBackup({
      stateDir: settings.state_dir,
      target: resolve(directory),
      keyFile,
      withKey: values["with-key"] === true,
      release: context.version,
      stored,
      now: () => new Date(),
      stop: held.stop,
    });
    context.out(values.json === true ? json(facts) : backupText(facts, keyFile));
    const lacking = lackingOf(facts);
    if (lacking.length > 0)
      throw new AccelError("BACKUP_NOT_WHOLE", `the backup lacks ${lacking.join(" and ")}`);
  },
};

export const restoreCommand: Command = {
  summary:
    "Restores a backup into an empty state directory, after checking all of it. The store gets another epoch, so every agent takes its state anew. With --drill it only proves that it could.",
  usage: [
    "accel-central restore DIR [options]",
    "accel-central restore DIR --drill [--in DIRECTORY] [options]",
    "",
    "  DIR               a backup; the state directory in the settings must be empty except for the key file",
    "  --clear-now       agents drop everything cached at once; otherwise one domain after the other within 10 minutes, and until then the origin confirms every hit",
    "  --drill           proves the backup: reads all of it, opens store, secrets and request logs, and changes nothing. Central may run",
    "  --in DIRECTORY    where a drill copies one file at a time to (default: the directory for temporary files)",
    usageOptions,
    "",
    "Exit status of a drill: 0 the backup can be restored, 1 it cannot, 2 bad usage or settings, 3 it can, but it is NOT WHOLE or its secrets do not open with the key.",
    "docs/operations/backup.md says what a restore cannot bring back.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      {
        ...configOption,
        "clear-now": { type: "boolean" },
        drill: { type: "boolean" },
        in: { type: "string" },
      },
      1,
    );
    const [directory] = positionals;
    if (directory === undefined) throw new AccelError("USAGE", "restore takes a directory");
    const settings = loadSettings(centralFields, values.config);
    const keyFile = keyFileOf(settings);
    if (values.drill === true) {
      await drill(resolve(directory), { ...values, keyFile }, context);
      return;
    }
    if (values.in !== undefined) throw new AccelError("USAGE", "--in goes with --drill");
    refuseOnPostgres(settings, "restored");
    using _ = lockStateDir(settings.state_dir);
    const now = (): Date => new Date();
    const facts = await restoreBackup({
      from: resolve(directory),
      stateDir: settings.state_dir,
      keyFile,
      logsMark: restoredMark,
      stored,
      begin: async (path, { when }) => {
        await using store = await openStore(path, now);
        const epoch = await noteRestore(store, {
          when_backed_up: when,
          when_restored: now().toISOString(),
          clear_now: values["clear-now"] === true,
        });
        return { epoch };
      },
      tryKey: async (path, file) => {
        await using store = await openStore(path, now);
        await openStoreKey(store, file);
      },
      now,
      stop: context.stop,
    });
    context.out(values.json === true ? json(facts) : restoreText(facts, keyFile));
  },
};

/** These commands know the file alone. */
function refuseOnPostgres(settings: CentralSettings, what: string): void {
  if (settings["store.url"] === undefined) return;
  throw new AccelError(
    "USAGE",
    `the store is on PostgreSQL (store.url), where it is ${what} by PostgreSQL's own means`,
    {
      hint: "docs/operations/cluster.md has the steps, for the store and for what lies beside it.",
    },
  );
}

/** Proves a backup and says what it found. Throws BACKUP_NOT_WHOLE where it can be restored, but lacks something. */
async function drill(
  from: string,
  given: {
    readonly in?: string | undefined;
    readonly json?: boolean | undefined;
    readonly "clear-now"?: boolean | undefined;
    readonly keyFile: string;
  },
  { out, stop }: CommandContext,
): Promise<void> {
  const { keyFile } = given;
  if (given["clear-now"] === true)
    throw new AccelError("USAGE", "--clear-now is for a restore, a drill changes nothing");
  const facts = await drillRestore({
    from,
    inDirectory: resolve(given.in ?? tmpdir()),
    keyFile,
    stored,
    openStore: async (path) => {
      await using store = await openStore(path, () => new Date());
      return await countsOf(store);
    },
    openSecrets: async (path, file) => {
      await using store = await openStore(path, () => new Date());
      await openStoreKey(store, file);
      return await openAllSealed(store, createSealer(...(await openKeysOfFile(file))));
    },
    openLogs: async (path) => checkedRecords(path),
    stop,
  });
  out(given.json === true ? json(facts) : drillText(facts, keyFile));
  const lacking = [
    ...(facts.blobs_lost_before > 0 ? [`${facts.blobs_lost_before} blobs`] : []),
    ...(facts.secrets === null ? ["a key that opens its secrets"] : []),
  ];
  if (lacking.length > 0)
    throw new AccelError("BACKUP_NOT_WHOLE", `the backup lacks ${lacking.join(" and ")}`);
}

async function countsOf(store: Store): Promise<OpenedStore> {
  const count = async (
    table: "customers" | "deployment_sites" | "domains" | "viewsets",
  ): Promise<number> => rowCount(store.selectFrom(table));
  return {
    customers: await count("customers"),
    deployment_sites: await count("deployment_sites"),
    domains: await count("domains"),
    versions: await count("viewsets"),
  };
}

function checkedRecords(path: string): number {
  const db = openSqlite(path, { sync: "normal" });
  try {
    const verdict = String(db.pragma("quick_check(1)", { simple: true }));
    if (verdict !== "ok") throw new Error(verdict);
    return Number(db.prepare("SELECT count(*) FROM record").pluck().get());
  } finally {
    db.close();
  }
}

/** Also of a backup of an earlier release, which knows of no bucket. */
async function areInBucket(store: Store): Promise<boolean> {
  const tables = await store.introspection.getTables();
  return (
    tables.some(({ name }) => name === "loose_objects") && (await placeOfObjects(store)).isInBucket
  );
}

const stored: StoredFacts = {
  epoch: async (path) => {
    await using store = openReader(path);
    return await storeEpoch(store);
  },
  objectsInBucket: async (path) => {
    await using store = openReader(path);
    return await areInBucket(store);
  },
  async *blobs(path) {
    await using store = openReader(path);
    if (!(await areInBucket(store))) yield* blobPages(store);
  },
  packages: async (path) => {
    await using store = openReader(path);
    return (await areInBucket(store)) ? new Set() : await storedPackages(store);
  },
};

/**
 * Holds all files until it is disposed: nothing is removed. `stop` also aborts when central no longer holds.
 * Throws CONTROL_SILENT where a central runs that does not answer, and
 * STATE_DIR_LOCKED where it has no socket.
 */
async function hold(
  settings: CentralSettings,
  stopped: CommandContext["stop"],
): Promise<AsyncDisposable & { readonly stop: AbortSignal }> {
  const { state_dir: stateDir } = settings;
  if (!existsSync(join(stateDir, "central.db")))
    throw new AccelError("NOT_FOUND", `there is no store in ${stateDir}`);
  const over = new AbortController();
  const ending = new AbortController();
  const lines = callControl(join(stateDir, "control.sock"), "backup-hold", {}, ending.signal);
  try {
    await lines.next();
  } catch (error) {
    if (codeOf(error) !== "CONTROL_UNREACHABLE") throw error;
    const lock = lockStateDir(stateDir);
    return { stop: stopped, [Symbol.asyncDispose]: async () => lock[Symbol.dispose]() };
  }
  // It says nothing more: the next line is its end.
  const ended = lines.next().then(
    () => undefined,
    () => undefined,
  );
  void ended.then(() =>
    over.abort(new AccelError("BACKUP_FAILED", "central ended while the backup was made")),
  );
  return {
    stop: AbortSignal.any([stopped, over.signal]),
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await ended;
    },
  };
}

function json(facts: unknown): string {
  return `${JSON.stringify(facts, null, 2)}\n`;
}

/** Lists what central's disk had lost when it was backed up. */
function lackingOf(facts: BackupFacts): readonly string[] {
  const { lost_blobs: blobs, lost_packages: packages, key } = facts;
  return [
    ...(blobs.length > 0 ? [`${blobs.length} blobs`] : []),
    ...(packages.length > 0 ? [`${packages.length} packages`] : []),
    ...(key === "missing" ? ["a key file that opens it"] : []),
  ];
}

function backupText(facts: BackupFacts, keyFile: string): string {
  const { blobs } = facts;
  const lines = [
    `${facts.directory}: central as it was at ${facts.when}`,
    `  store         ${facts.store_bytes} bytes, epoch ${facts.epoch}`,
    ...(facts.objects_in_bucket
      ? [
          "  blobs and packages are in the bucket and NOT in the backup; the bucket keeps what this backup names for `objects.delete_after`",
        ]
      : [
          `  blobs         ${blobs.count} with ${blobs.bytes} bytes, ${blobs.count - blobs.copied} of them linked`,
          `  packages      ${facts.packages}`,
        ]),
    `  request logs  ${countText(facts.log_days, "day")} with ${facts.log_bytes} bytes`,
  ];
  for (const [what, lost] of [
    ["blobs", facts.lost_blobs],
    ["packages", facts.lost_packages],
  ] as const)
    if (lost.length > 0)
      lines.push(
        `NOT WHOLE: ${lost.length} ${what} are missing on central's disk and so in the backup: ${lost.slice(0, 3).join(", ")}${lost.length > 3 ? ", …" : ""}`,
      );
  if (facts.key === "in the backup")
    lines.push(`THE KEY IS IN IT: whoever reads this directory can read every secret of central.`);
  if (facts.key === "not in the backup")
    lines.push(
      `WITHOUT THE KEY: ${keyFile} is not in the backup, and nothing of it starts without that file. Keep a copy of it apart, or use --with-key.`,
    );
  if (facts.key === "missing")
    lines.push(
      `THE KEY IS MISSING: there is no file ${keyFile}, so no secret in this backup can be opened. Put it back before anything else.`,
    );
  return `${lines.join("\n")}\n`;
}

function restoreText(facts: RestoreFacts, keyFile: string): string {
  const lines = [
    `${facts.state_dir}: central as it was at ${facts.backup_of}`,
    `  ${facts.files} files with ${facts.bytes} bytes; epoch ${facts.epoch}, before ${facts.epoch_before}`,
    "  Changes since that time are not in it. Tokens and passwords that were revoked since are valid again (docs/operations/backup.md).",
  ];
  if (facts.objects_in_bucket) lines.push(bucketLine);
  if (facts.blobs_lost_before > 0)
    lines.push(`NOT WHOLE: ${facts.blobs_lost_before} blobs were missing when it was backed up.`);
  if (facts.key === "missing")
    lines.push(`THE KEY IS MISSING: central does not start until its key file is at ${keyFile}.`);
  if (facts.key === "another")
    lines.push(
      `THE KEY IS ANOTHER: the secrets in this store do not open with ${keyFile}, and central does not start with it.`,
    );
  return `${lines.join("\n")}\n`;
}

function drillText(facts: DrillFacts, keyFile: string): string {
  const { store } = facts;
  const lines = [
    `${facts.backup}: can be restored; central would be as it was at ${facts.backup_of} (release ${facts.release_of_backup})`,
    `  ${facts.files} files with ${facts.bytes} bytes, each with its digest; ${facts.blobs} of them blobs`,
    `  the store opens: ${countText(store.customers, "customer")}, ${countText(store.deployment_sites, "deployment site")}, ${countText(store.domains, "domain")}, ${countText(store.versions, "version")}`,
    `  request logs: ${countText(facts.log_records, "record")} of ${countText(facts.log_days, "day")}`,
  ];
  if (facts.objects_in_bucket) lines.push(bucketLine);
  if (facts.secrets !== null)
    lines.push(
      `  ${facts.secrets} secrets open with the key ${facts.key === "of the backup" ? "in the backup" : keyFile}`,
    );
  if (facts.blobs_lost_before > 0)
    lines.push(`NOT WHOLE: ${facts.blobs_lost_before} blobs were missing when it was backed up.`);
  if (facts.key === "missing")
    lines.push(
      `THE KEY IS MISSING: it is not in the backup, and there is no ${keyFile}. No secret was opened.`,
    );
  if (facts.key === "another")
    lines.push(`THE KEY IS ANOTHER: the secrets in the backup do not open with it.`);
  return `${lines.join("\n")}\n`;
}

const bucketLine =
  "  Blobs and packages are in the bucket, which was not looked at: it keeps what a backup names for `objects.delete_after`.";

const countText = (count: number, one: string): string =>
  `${count} ${count === 1 ? one : `${one}s`}`;
