// `accel-central migrate`: moves the store of a stopped central from `central.db` to the PostgreSQL that the settings name. What lies beside it in the state
// directory stays where it is.
//
//   the mark "moving" is in the state directory     from here on nothing serves: neither from the file nor from PostgreSQL
//   rows are copied, then compared                  cut off, the command goes on where it was
//   the mark "moved"                                from here on central serves from PostgreSQL, and never again from the file

import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { createSealer, openKeysOfFile } from "../base/seal.ts";
import { loadSettings } from "../base/settings-file.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import { refuseUnfinished } from "./backup/restore-backup.ts";
import { centralFields, keyFileOf, type CentralSettings } from "./settings/fields.ts";
import { commandPatienceMs, postgresPlace } from "./store-opening.ts";
import { openStore } from "./store/engine/database.ts";
import { placeText, type PostgresPlace } from "./store/engine/postgres-place.ts";
import { openStoreKey } from "./store/engine/store-key.ts";
import {
  endMove,
  epochUnderWay,
  moveStore,
  takeMoveBack,
  type MoveFacts,
} from "./store/move/move-store.ts";
import { SourceFile } from "./store/move/source-file.ts";
import {
  readStoreMark,
  removeStoreMark,
  writeStoreMark,
  type StoreMark,
} from "./store/move/store-mark.ts";
import { openAllSealed } from "./store/sealed-columns.ts";

export const migrateCommand: Command = {
  summary:
    "Moves the store of a stopped central from central.db to the PostgreSQL that store.url names: every row is copied and compared, the epoch stays, and agents notice nothing.",
  usage: [
    "accel-central migrate --from DIR [options]",
    "accel-central migrate --from DIR --abandon [options]",
    "",
    "  --from DIR        the state directory, as `state_dir` names it: logs, blobs and packages stay in it",
    "  --abandon         takes back a move that is not whole; central serves from the file again",
    "  --config FILE     settings (default /etc/accel-central/central.yaml)",
    "  --json            facts as JSON",
    "",
    "If a move is cut off, give it again: it goes on where it was. Once it is whole, central.db stays as it was, and no central serves from it any more.",
    "docs/operations/cluster.md says what the server must be, and has the steps.",
  ].join("\n"),
  async run(context) {
    const { values } = readArgs(context.args, {
      from: { type: "string" },
      abandon: { type: "boolean" },
      config: { type: "string", default: "/etc/accel-central/central.yaml" },
      json: { type: "boolean" },
    });
    if (values.from === undefined) throw new AccelError("USAGE", "migrate takes --from DIR");
    const settings = loadSettings(centralFields, values.config);
    refuseOtherDirectory(resolve(values.from), settings.state_dir);
    const place = postgresPlace(settings);
    if (place === undefined)
      throw new AccelError("USAGE", `${values.config} names no store.url to move the store to`);
    using _ = lockStateDir(settings.state_dir);
    refuseUnfinished(settings.state_dir);
    if (values.abandon === true) await abandon(settings, place, context);
    else await migrate(settings, place, { ...context, isJson: values.json === true });
  },
};

/** A copy of a state directory may be older than what agents were told that it holds: request logs would come twice, or never. */
function refuseOtherDirectory(from: string, stateDir: string): void {
  if (!existsSync(from)) throw new AccelError("NOT_FOUND", `there is no directory ${from}`);
  if (existsSync(stateDir) && realpathSync(from) === realpathSync(stateDir)) return;
  throw new AccelError(
    "USAGE",
    `${from} is not the state directory of these settings, which is ${stateDir}`,
    {
      hint: "Request logs, blobs and packages stay in the state directory. To move central to another host, move the whole directory first while no central runs, and migrate there.",
    },
  );
}

const now = (): Date => new Date();

async function migrate(
  settings: CentralSettings,
  place: PostgresPlace,
  { out, stop, isJson }: CommandContext & { readonly isJson: boolean },
): Promise<void> {
  const { state_dir: stateDir } = settings;
  const file = join(stateDir, "central.db");
  const where = placeText(place);
  const known = readStoreMark(stateDir);
  if (known?.state === "moved" && known.to === where) {
    out(doneText(known, stateDir, isJson));
    return;
  }
  refuseMoved(known, where, stateDir);
  if (!existsSync(file)) throw new AccelError("NOT_FOUND", `there is no store in ${stateDir}`);
  const keyFile = keyFileOf(settings);
  await using stack = new AsyncDisposableStack();
  const sourceStore = stack.use(await openStore(file, now));
  await openStoreKey(sourceStore, keyFile);
  const source = stack.use(new SourceFile(file));
  const target = stack.use(await openTarget(place));
  const mark = (state: StoreMark["state"], epoch: string): Promise<void> =>
    writeStoreMark(stateDir, { state, to: where, epoch, when: now().toISOString() });
  const facts = await moveStore({
    source,
    sourceStore,
    target: target.store,
    where,
    onBegin: async (epoch) => mark("moving", epoch),
    onTable: (step, name, rows) => {
      if (!isJson && rows > 0) out(`${step.padEnd(8)} ${name}: ${rows} rows\n`);
    },
    stop,
  });
  const secrets = await openAllSealed(
    target.store,
    createSealer(...(await openKeysOfFile(keyFile))),
  );
  await mark("moved", facts.epoch);
  await endMove(target.store);
  const told = { ...facts, secrets, store: where, state_dir: stateDir };
  out(isJson ? `${JSON.stringify(told, null, 2)}\n` : movedText(told));
}

function movedText(facts: MoveFacts & { secrets: number; store: string; state_dir: string }) {
  return [
    `${facts.store}: the store of ${facts.state_dir}, ${facts.rows} rows in ${facts.tables} tables, each compared with the file`,
    `  epoch ${facts.epoch}, as before; ${facts.secrets} secrets open with the key`,
    `  central.db stays as it was, and no central serves from it any more. Start central.`,
    "",
  ].join("\n");
}

/** A move that is given again when it is whole is a success. */
function doneText({ to, epoch, when }: StoreMark, stateDir: string, isJson: boolean): string {
  return isJson
    ? `${JSON.stringify({ moved_before: when, epoch, store: to, state_dir: stateDir }, null, 2)}\n`
    : `the store of ${stateDir} was moved to ${to} at ${when}: there is nothing left to do\n`;
}

function refuseMoved(mark: StoreMark | undefined, where: string, stateDir: string): void {
  if (mark?.state === "moved")
    throw new AccelError(
      "STORE_MOVED",
      `the store of ${stateDir} was moved to ${mark.to} at ${mark.when}`,
    );
  if (mark !== undefined && mark.to !== where)
    throw new AccelError(
      "STORE_MOVED",
      `the store of ${stateDir} is being moved to ${mark.to}, and store.url names ${where}`,
      {
        hint: "Let `store.url` name the same database to go on; or give --abandon with those settings first.",
      },
    );
}

/** The database, held so that no central begins to serve it meanwhile. */
async function openTarget(place: PostgresPlace) {
  const { connectPostgresStore, holdPostgresStore, unhurriedLimits } =
    await import("./store/engine/postgres-store.ts");
  await using stack = new AsyncDisposableStack();
  const random = Math.random;
  stack.use(
    await holdPostgresStore({
      place,
      random,
      onChange: () => undefined, // What is under way meets it as well.
      onTaken: () => undefined,
      patienceMs: commandPatienceMs,
    }),
  );
  const store = stack.use(
    connectPostgresStore({ place: { ...place, connections: 2 }, random, limits: unhurriedLimits }),
  );
  const owned = stack.move();
  return { store, [Symbol.asyncDispose]: async () => owned.disposeAsync() };
}

/** Nothing has served from PostgreSQL yet, so that the file is still the store, whether PostgreSQL can be reached or not. */
async function abandon(
  { state_dir: stateDir }: CentralSettings,
  place: PostgresPlace,
  { out }: Pick<CommandContext, "out">,
): Promise<void> {
  const mark = readStoreMark(stateDir);
  const where = placeText(place);
  if (mark?.state === "moved")
    throw new AccelError(
      "STORE_MOVED",
      `the store of ${stateDir} was moved to ${mark.to} at ${mark.when}, and may have changed there since: that is not taken back`,
    );
  if (mark === undefined)
    throw new AccelError("NOT_FOUND", `no store of ${stateDir} is being moved`);
  if (mark.to !== where) refuseMoved(mark, where, stateDir);
  const left = await emptied(place, mark.epoch).catch((error: unknown) => messageOf(error));
  await removeStoreMark(stateDir);
  out(
    left === undefined
      ? `${stateDir}: central serves from the file again, without \`store.url\`; ${where} holds nothing of it\n`
      : `${stateDir}: central serves from the file again, without \`store.url\`; ${where} may hold a part of it still (${left}): drop that database\n`,
  );
}

/** Returns why the database was left as it is; undefined: it holds nothing of the move. */
async function emptied(place: PostgresPlace, epoch: string): Promise<string | undefined> {
  await using target = await openTarget(place);
  const under = await epochUnderWay(target.store);
  // Without the table of the move not a row was copied; whatever is there is not ours to take away.
  if (under === undefined) return undefined;
  if (under !== epoch) return "it holds part of another store";
  await takeMoveBack(target.store);
  return undefined;
}
