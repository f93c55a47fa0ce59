// The files of accelerator packages in the state directory.
//
//   <directory>/<24 hex>           whole and synced; a row of `packages` names it
//   <directory>/tmp/<24 hex>       being received
//
// A file is synced and renamed, its directory synced, and only then its row committed: a file without a row is of an upload that was cut off or
// refused, is never served, and goes at the next start.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { ensureDirectory, renameDurable } from "../../../base/durable-file.ts";
import type { Sha256 } from "../../../core/ids.ts";
import { storedPackages } from "./packages.ts";
import type { Store } from "../engine/database.ts";
import type { KeptPackage, Packages, StagedPackage } from "../objects/object-store.ts";
import { checkWheel } from "./wheel-file.ts";

export async function openPackageFiles(directory: string, store: Store): Promise<PackageFiles> {
  const incoming = join(directory, "tmp");
  await ensureDirectory(incoming);
  for (const name of await readdir(incoming)) await rm(join(incoming, name), { force: true });
  const named = await storedPackages(store);
  for (const name of await readdir(directory))
    if (name !== "tmp" && !named.has(name)) await rm(join(directory, name), { force: true });
  return new PackageFiles(directory);
}

export class PackageFiles implements Packages {
  readonly #directory: string;

  /** Called by `openPackageFiles`. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Synced when it resolves. Throws what `bytes` and the disk throw. */
  async stage(
    bytes: AsyncIterable<Uint8Array>,
    bytesMax: number,
  ): Promise<StagedPackage | "too-large"> {
    const name = randomBytes(12).toString("hex");
    const [staged, kept] = [join(this.#directory, "tmp", name), join(this.#directory, name)];
    await using file = await open(staged, "wx", 0o600);
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => rm(staged, { force: true }));
    const hash = createHash("sha256");
    let size = 0;
    for await (const chunk of bytes) {
      size += chunk.byteLength;
      if (size > bytesMax) return "too-large";
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    await file.sync();
    let place = staged;
    let isReleased = false;
    stack.move();
    return {
      size,
      sha256: hash.digest("hex") as Sha256, // The one form of a digest in hex.
      check: async (sentAs) => checkWheel(place, sentAs),
      keep: async () => {
        await renameDurable(staged, kept);
        place = kept;
        return { stored_as: name, object_key: null };
      },
      release: async () => {
        isReleased = true;
      },
      [Symbol.asyncDispose]: async () => {
        if (!isReleased) await rm(place, { force: true });
      },
    };
  }

  async open({ stored_as: storedAs }: Pick<KeptPackage, "stored_as">): Promise<Readable> {
    const file = createReadStream(join(this.#directory, storedAs));
    await once(file, "open");
    return file;
  }
}
