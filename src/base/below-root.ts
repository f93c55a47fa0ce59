// Opens files below a root, whoever swaps directories and links meanwhile: what is given out lies below the
// root, and nothing outside it is ever opened.
//
// The kernel resolves a name to a handle that only names (O_PATH: no device and no pipe notices). The handle
// is asked where it lies (/proc/self/fd), which no race can forge. What lies below the root is then opened
// through the handle, not by its name once more.

import {
  closeSync,
  constants,
  fstatSync,
  open,
  openSync,
  readlinkSync,
  type BigIntStats,
} from "node:fs";
import { open as openFile, type FileHandle } from "node:fs/promises";
import { promisify } from "node:util";

const openNumber = promisify(open);
/**
 * O_PATH of Linux, which Node does not name; it has the same value on all architectures that Node runs on
 * there.
 */
const namingOnly = 0o10000000;

/** The file that a name led to, whatever it is called by now. Nothing is read from it yet. */
export class Found implements Disposable {
  readonly #number: number;

  constructor(number: number) {
    this.#number = number;
  }

  /** A name of the file for system calls, valid until it is disposed. */
  get link(): string {
    return `/proc/self/fd/${this.#number}`;
  }

  /**
   * The place where it lies now: absolute, without links, one character a byte, so that names that are no
   * UTF-8 stay apart.
   */
  get place(): string {
    return readlinkSync(this.link, "latin1");
  }

  get stats(): BigIntStats {
    return fstatSync(this.#number, { bigint: true });
  }

  /**
   * Opens the file for reading without blocking: its name could have become a pipe's only if it were another
   * file.
   */
  async open(): Promise<FileHandle> {
    return openFile(this.link, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  }

  [Symbol.dispose](): void {
    closeSync(this.#number); // The handle only names a file: nothing is written back.
  }
}

/** A directory as it was when it was opened, also when its name leads elsewhere by now. */
export class Root extends Found {
  /** Opens the root, following links. Throws ENOENT, ENOTDIR. */
  static async open(path: string): Promise<Root> {
    return new Root(await openNumber(path, namingOnly | constants.O_DIRECTORY));
  }

  /**
   * Returns the file, or undefined if it lies outside. Throws what resolving the path throws (ENOENT, ELOOP,
   * ENAMETOOLONG).
   */
  async find(path: string): Promise<Found | undefined> {
    return this.keep(await name(`${this.link}/${path}`));
  }

  /** Judges like `find` what was found under another name, and disposes it if it lies outside. */
  keep(found: Found): Found | undefined {
    if (isBelow(this.place, found.place)) return found;
    found[Symbol.dispose]();
    return undefined;
  }
}

/** Resolves a path to a handle, following links. */
export async function name(path: string): Promise<Found> {
  return new Found(await openNumber(path, namingOnly));
}

/**
 * Does the same as `Root.find` with one wait instead of two. A root that is a link may be moved between the
 * two look-ups, so what then seems to lie outside is looked up again from the root itself.
 */
export async function findBelow(root: string, path: string): Promise<Found | undefined> {
  const [base, file] = await Promise.allSettled([Root.open(root), name(`${root}/${path}`)]);
  using kept = base.status === "fulfilled" ? base.value : undefined;
  const found = file.status === "fulfilled" ? file.value : undefined;
  const below = found && kept?.keep(found);
  if (kept === undefined) found?.[Symbol.dispose]();
  if (base.status === "rejected") throw base.reason;
  if (file.status === "rejected") throw file.reason;
  if (below !== undefined) return below;
  using again = await Root.open(root);
  return await again.find(path);
}

/** Finds the same as `findBelow` without waiting for another thread: for what the kernel knows by heart, since this thread stands still meanwhile. */
export function findBelowNow(root: string, path: string): Found | undefined {
  using base = new Root(openSync(root, namingOnly | constants.O_DIRECTORY));
  const below = base.keep(new Found(openSync(`${root}/${path}`, namingOnly)));
  return below ?? base.keep(new Found(openSync(`${base.link}/${path}`, namingOnly)));
}

/**
 * Returns a text that changes with the content and with the file itself. A change within one tick of the file
 * system's clock may not show.
 */
export function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].map((part) => part.toString(36)).join("-");
}

function isBelow(root: string, place: string): boolean {
  return place === root || place.startsWith(root === "/" ? root : `${root}/`);
}
