// Names that differ only in case: two files here, one on systems that fold case. Whoever has both seldom means it.

import { quotedPath } from "./quoted-path.ts";

/** Two names of one directory, as paths. */
export type CaseCollision = readonly [string, string];

/** A name without capitals and without characters beyond ASCII is its own fold, as most names are. */
const mayFold = /[A-Z\u0080-\uffff]/;
/** The most collisions that are reported; nobody would read more. */
const collisionsMax = 1_000;

/**
 * The most characters that the paths of all directories may have together; they bound what a hostile list
 * costs. A large real site has a million.
 */
export const directoryCharsMax = 32 * 2 ** 20;

/**
 * Finds collisions among these paths and the directories above them (`/` between segments), at most the first
 * thousand. Returns undefined if the paths of the directories have more than `directoryCharsMax` characters
 * together. What lies below two colliding directories is not reported as well.
 */
export function caseCollisions(paths: readonly string[]): readonly CaseCollision[] | undefined {
  if (!paths.some((path) => mayFold.test(path))) return [];
  const directories = new Directories();
  const collisions: CaseCollision[] = [];
  /**
   * Maps a fold to its path, for names that are not their own fold. The others, which are most, are only
   * looked up.
   */
  const folded = new Map<string, string>();
  for (const path of paths) {
    const parent = directories.number(parentOf(path));
    if (parent === undefined) return undefined;
    note(parent, path);
  }
  for (const [directory, parent] of directories.all()) note(parent, directory);
  if (folded.size === 0) return [];
  for (const path of paths) meet(directories.number(parentOf(path)), path);
  for (const [directory, parent] of directories.all()) meet(parent, directory);
  return collisions;

  function note(parent: number, path: string): void {
    const name = nameOf(path);
    const fold = foldCase(name);
    if (fold === name) return;
    const key = `${parent}/${fold}`;
    const other = folded.get(key);
    if (other === undefined) folded.set(key, path);
    else if (other !== path) tell([other, path]); // Equal paths are a file and a directory of one name, which is no collision of case.
  }

  function meet(parent: number | undefined, path: string): void {
    const name = nameOf(path);
    if (foldCase(name) !== name) return;
    const other = folded.get(`${parent}/${name}`);
    if (other !== undefined) tell([path, other]);
  }

  function tell(collision: CaseCollision): void {
    if (collisions.length < collisionsMax) collisions.push(collision);
  }
}

/** Numbers directories as they come up, each with the number of the one above it; the root is 0. */
class Directories {
  readonly #numbers = new Map<string, number>([["", 0]]);
  readonly #parents = new Map<string, number>();
  #chars = 0;

  /**
   * Returns the number of a directory, or undefined if the limit is exceeded. Walks upwards to the first
   * known directory, so shared parents are walked once.
   */
  number(directory: string): number | undefined {
    const unknown: string[] = [];
    let known: number | undefined;
    for (let at = directory; ; at = parentOf(at)) {
      known = this.#numbers.get(at);
      if (known !== undefined) break;
      unknown.push(at);
      this.#chars += at.length;
      if (this.#chars > directoryCharsMax) return undefined;
    }
    for (const at of unknown.toReversed()) {
      this.#parents.set(at, known);
      known = this.#numbers.size;
      this.#numbers.set(at, known);
    }
    return known;
  }

  all(): Iterable<readonly [string, number]> {
    return this.#parents;
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/**
 * Folds case fully (Unicode, chapter 5.18) as nearly as the language can: to upper and back to lower case,
 * with one sigma.
 */
function foldCase(name: string): string {
  if (!mayFold.test(name)) return name;
  return name.toUpperCase().toLowerCase().replaceAll("ς", "σ");
}

/** Describes a collision for a message. */
export function describeCollision([one, other]: CaseCollision): string {
  return `${quotedPath(one)} and ${quotedPath(other)} differ only in case`;
}
