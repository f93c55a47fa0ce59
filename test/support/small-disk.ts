// A real small file system: ext4 in a file, mounted where a program has its state, filled by somebody else, and turned read-only as after an error. As root only.

import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { tempDir } from "./temp-dir.ts";

const mib = 2 ** 20;

export const canMountDisks =
  process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "true"]).status === 0;

function must(command: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
}

export class SmallDisk implements Disposable {
  readonly #dir = tempDir();
  readonly #size: string;
  readonly #reserved: number;
  readonly #blockBytes: number;
  readonly #files: number | undefined;
  at = "";

  /**
   * `size`: as truncate(1) takes it. `reserved`: the share in percent that only root may use; ext4 reserves 5 unless it is told otherwise. `blockBytes`: 4,096, as of a
   * disk of half a GiB and more. `files`: as many as there can be; unsaid: as ext4 makes it.
   */
  constructor(
    size: string,
    {
      reserved = 0,
      blockBytes = 4_096,
      files,
    }: { reserved?: number; blockBytes?: number; files?: number } = {},
  ) {
    this.#size = size;
    this.#reserved = reserved;
    this.#blockBytes = blockBytes;
    this.#files = files;
  }

  mount(at: string): void {
    const image = join(this.#dir.path, "image");
    this.at = at;
    must("truncate", "-s", this.#size, image);
    const [reserved, blockBytes] = [String(this.#reserved), String(this.#blockBytes)];
    const files = this.#files === undefined ? [] : ["-N", String(this.#files)];
    must("mkfs.ext4", "-q", "-m", reserved, "-b", blockBytes, ...files, image);
    mkdirSync(at, { recursive: true, mode: 0o700 });
    must("mount", "-o", "loop", image, at);
  }

  /** For who is not root. */
  get free(): number {
    const { bavail, bsize } = statfsSync(this.at);
    return bavail * bsize;
  }

  /** Somebody else writes until so much is left for who is not root; "for nobody": until the disk takes no byte of root's either. */
  fill(left: number | "for nobody"): void {
    this.#assertMounted();
    const path = join(this.at, "of-somebody-else");
    const isLeft = (): number => (left === "for nobody" ? Infinity : this.free - left);
    let piece = mib;
    while (piece > 0 && isLeft() > 0) {
      try {
        appendFileSync(path, Buffer.alloc(Math.min(piece, Math.ceil(isLeft()))));
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
        piece = Math.floor(piece / 16);
      }
    }
  }

  /** Somebody else makes files until no more can be made. */
  fillNames(): void {
    this.#assertMounted();
    mkdirSync(join(this.at, "of-many"), { recursive: true });
    while (statfsSync(this.at).ffree > 0)
      closeSync(openSync(join(this.at, "of-many", String((this.#made += 1))), "w"));
  }

  #made = 0;

  /** Otherwise the disk of the machine would be filled. */
  #assertMounted(): void {
    const isMounted = this.at !== "" && statSync(this.at).dev !== statSync(dirname(this.at)).dev;
    if (!isMounted) throw new Error("the small disk is not mounted");
  }

  clean(): void {
    rmSync(join(this.at, "of-somebody-else"), { force: true });
    rmSync(join(this.at, "of-many"), { recursive: true, force: true });
  }

  /** It takes nothing any more, as ext4 does after an error (errors=remount-ro). */
  break(): void {
    must("mount", "-o", "remount,abort", this.at);
  }

  /** To be done before the directory goes in which it is mounted. */
  unmount(): void {
    if (this.at !== "") spawnSync("umount", ["--lazy", this.at]);
    this.at = "";
  }

  [Symbol.dispose](): void {
    this.unmount();
    this.#dir[Symbol.dispose]();
  }
}
