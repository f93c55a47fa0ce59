// Names that differ only in case: two files here, one on systems that fold case. Whoever has both seldom means it.

import { quotedPath } from "./quoted-path.ts";

/** Two names of one directory that are equal in Unicode's lower case. */
export type CaseCollision = readonly [string, string];

/** Among these paths and the directories above them; `/` between segments. Each name is told once, with one that it collides with. */
export function caseCollisions(paths: Iterable<string>): readonly CaseCollision[] {
  const names = new Set<string>();
  for (const path of paths) {
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      const name = path.slice(0, end);
      if (names.has(name)) break;
      names.add(name);
    }
  }
  const collisions: CaseCollision[] = [];
  const folded = new Map<string, string>();
  for (const name of names) {
    const fold = name.toLowerCase();
    if (fold === name) continue;
    const other = folded.get(fold) ?? (names.has(fold) ? fold : undefined);
    if (other === undefined) folded.set(fold, name);
    // What lies below directories that collide is told by them.
    else if (parentOf(other) === parentOf(name)) collisions.push([other, name]);
  }
  return collisions;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** As it is told. */
export function describeCollision([one, other]: CaseCollision): string {
  return `${quotedPath(one)} and ${quotedPath(other)} differ only in case`;
}
