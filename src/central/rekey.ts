// `accel-central rekey`: brings a store to another key file, while no central runs.
//
//   the key file has the new key, and below it the one of before    from here on the new one seals, both open
//   every sealed text is sealed anew, 500 in a transaction
//   all of them are opened with the new key alone
//   the key file has the new key
//
// Cut off at any point, central starts with both keys, and `rekey` goes on where it was.

import { statSync } from "node:fs";
import { readArgs, type Command } from "../base/command.ts";
import { writeDurable } from "../base/durable-file.ts";
import { createSealer, newKey, openKeysOfFile } from "../base/seal.ts";
import { loadSettings } from "../base/settings-file.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { centralFields, keyFileOf } from "./settings/fields.ts";
import { openStoppedStore } from "./store-opening.ts";
import { openStoreKey } from "./store/engine/store-key.ts";
import { openAllSealed, resealAll } from "./store/sealed-columns.ts";

export const rekeyCommand: Command = {
  summary:
    "Makes a new key file, and seals every secret of the store with it. Central must be stopped; agents go on meanwhile.",
  usage: [
    "accel-central rekey [options]",
    "",
    "  --config FILE     settings (default /etc/accel-central/central.yaml)",
    "",
    "If a rekey is cut off, give it again. Backups from before open with the key of before: keep it as long as they are kept.",
  ].join("\n"),
  async run({ args, out, stop }) {
    const { values } = readArgs(args, {
      config: { type: "string", default: "/etc/accel-central/central.yaml" },
    });
    const settings = loadSettings(centralFields, values.config);
    const { state_dir: stateDir } = settings;
    const keyFile = keyFileOf(settings);
    using _ = lockStateDir(stateDir);
    await using store = await openStoppedStore(settings, () => new Date());
    await openStoreKey(store, keyFile); // Throws where it is another's.
    const { uid, gid, mode } = statSync(keyFile);
    const write = (...keys: readonly string[]): Promise<void> =>
      writeDurable(keyFile, keys.map((key) => `${key}\n`).join(""), mode & 0o777, { uid, gid });
    const hex = (key: Uint8Array): string => Buffer.from(key).toString("hex");
    const [first, second] = await openKeysOfFile(keyFile);
    const [key, before] =
      second === undefined ? [Buffer.from(newKey(), "hex"), first] : [first, second];
    await write(hex(key), hex(before));
    stop.throwIfAborted();
    const sealed = await resealAll(store, createSealer(key, before));
    const opened = await openAllSealed(store, createSealer(key));
    await write(hex(key));
    out(
      `${keyFile}: the key is another; ${sealed} secrets were sealed with it, and ${opened} open\nKeep a copy of it apart. Backups from before need the key of before.\n`,
    );
  },
};
