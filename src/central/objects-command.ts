// `accel-central objects`: brings the blobs and packages of a stopped central into the bucket that the settings name.

import { randomBytes } from "node:crypto";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { loadSettings } from "../base/settings-file.ts";
import { lockStateDir } from "../base/state-lock.ts";
import { AccelError } from "../core/faults.ts";
import { refuseUnfinished } from "./backup/restore-backup.ts";
import { bucketPlace, openBucket, tryObjects } from "./objects-opening.ts";
import { centralFields, type CentralSettings } from "./settings/fields.ts";
import { openStoppedStore } from "./store-opening.ts";
import { placeOfObjects } from "./store/objects/objects-place.ts";
import type { ObjectsMoved } from "./store/objects/move-objects.ts";

export const objectsCommand: Command = {
  summary:
    "Moves blobs and packages of a stopped central from its state directory into the bucket that objects.s3 names: each is copied, read back and compared. Agents notice nothing.",
  usage: [
    "accel-central objects move [options]",
    "",
    "  --config FILE     settings (default /etc/accel-central/central.yaml)",
    "  --json            facts as JSON",
    "",
    "If a move is cut off, give it again: it goes on where it was; until it is whole, central serves from the state directory without `objects.s3`.",
    "Files stay where they are. Once the move is whole, central does not look at them any more, and `blobs` and `packages` may be removed.",
    "",
    "Exit status: 0 everything is moved, 1 failed, 2 bad usage or settings, 3 it is moved but for files that the disk had LOST.",
    "docs/operations/cluster.md says what the bucket must be, and has the steps.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(
      context.args,
      {
        config: { type: "string", default: "/etc/accel-central/central.yaml" },
        json: { type: "boolean" },
      },
      1,
    );
    if (positionals[0] !== "move") throw new AccelError("USAGE", "objects takes `move`");
    const settings = loadSettings(centralFields, values.config);
    if (bucketPlace(settings) === undefined)
      throw new AccelError("USAGE", `${values.config} names no objects.s3.bucket to move to`);
    using _ = lockStateDir(settings.state_dir);
    refuseUnfinished(settings.state_dir);
    await move(settings, { ...context, isJson: values.json === true });
  },
};

/** Between two lines of progress. */
const toldMs = 5_000;

async function move(
  settings: CentralSettings,
  { out, stop, isJson }: CommandContext & { readonly isJson: boolean },
): Promise<void> {
  const now = (): Date => new Date();
  await using store = await openStoppedStore(settings, now);
  if ((await placeOfObjects(store)).isInBucket) {
    const text =
      "blobs and packages of this store are in a bucket already: there is nothing left to do";
    out(isJson ? `${JSON.stringify({ moved_before: true }, null, 2)}\n` : `${text}\n`);
    return;
  }
  const place = bucketPlace(settings);
  const where = await tryObjects(settings);
  if (place === undefined || where === undefined) return;
  using bucket = await openBucket({
    place,
    onCall: () => undefined,
    random: Math.random,
    stop,
  });
  let toldAtMs = performance.now();
  const { moveObjects } = await import("./store/objects/move-objects.ts");
  const moved = await moveObjects({
    store,
    bucket,
    stateDir: settings.state_dir,
    now,
    randomBytes,
    stop,
    onProgress: ({ blobs, packages, bytes }) => {
      if (isJson || performance.now() - toldAtMs < toldMs) return;
      toldAtMs = performance.now();
      out(`copied   ${blobs} blobs and ${packages} packages with ${bytes} bytes\n`);
    },
  });
  out(
    isJson
      ? `${JSON.stringify({ ...moved, objects: where }, null, 2)}\n`
      : movedText(moved, where, settings.state_dir),
  );
  const lost = moved.lost_blobs.length + moved.lost_packages.length;
  if (lost > 0)
    throw new AccelError("BACKUP_NOT_WHOLE", `${lost} files were lost on the disk already`, {
      hint: "Central starts, and asks for lost blobs again where somebody has them. Put back what is missing from a backup, and upload it again.",
    });
}

const shownMax = 3;

function movedText(moved: ObjectsMoved, where: string, stateDir: string): string {
  const lines = [
    `${where}: ${moved.blobs} blobs and ${moved.packages} packages with ${moved.bytes} bytes, each read back and compared`,
    `  ${stateDir}/blobs and ${stateDir}/packages stay as they are, and central does not look at them any more. Start central.`,
  ];
  for (const [what, lost] of [
    ["blobs", moved.lost_blobs],
    ["packages", moved.lost_packages],
  ] as const)
    if (lost.length > 0)
      lines.push(
        `NOT WHOLE: ${lost.length} ${what} are missing or damaged on the disk, and not in the bucket: ${lost.slice(0, shownMax).join(", ")}${lost.length > shownMax ? ", …" : ""}`,
      );
  return `${lines.join("\n")}\n`;
}
