// Files that tell in each of their lines in which version of the site they changed last, so that an answer can be judged: whether it is whole, and of which
// versions of the site it may be.

/** Versions, both included. */
export type Span = { readonly from: number; readonly to: number };

/** Lines of a file: bodies between 20 bytes and a few dozen kilobytes. */
const linesOf = (no: number): number => 1 + ((no * 7) % 11) ** 3;
const versionDigits = 5;
/** Farther than any proof goes. */
const versionsMost = 10 ** versionDigits - 1;

export class VersionedSite {
  readonly files: number;
  readonly #changes: (no: number, version: number) => boolean;

  /** `changes`: whether a file is another one in this version than in the one before; unsaid: all are. */
  constructor(files: number, changes: (no: number, version: number) => boolean = () => true) {
    this.files = files;
    this.#changes = changes;
  }

  path(no: number): string {
    return `d${no % 100}/f${no}.txt`;
  }

  /** Where a line begins in about the middle, whatever the version is. */
  middle(no: number): number {
    return this.#line(no, 0).length * Math.floor(linesOf(no) / 2);
  }

  content(no: number, version: number): string {
    let changed = version;
    while (changed > 1 && !this.#changes(no, changed)) changed--;
    return this.#line(no, changed).repeat(linesOf(no));
  }

  /** What is to be written for it. */
  *change(version: number): Generator<readonly [string, string]> {
    for (let no = 0; no < this.files; no++)
      if (version === 1 || this.#changes(no, version))
        yield [this.path(no), this.content(no, version)];
  }

  /** The versions that have this file with these bytes from `at` on; undefined: none has, it is mixed, torn or another file's. */
  spanOf(no: number, body: string, at = 0): Span | undefined {
    const from = Number(body.slice(0, versionDigits));
    if (!(from >= 1) || body !== this.content(no, from).slice(at)) return undefined;
    let to = from;
    while (to < versionsMost && !this.#changes(no, to + 1)) to++;
    return { from, to };
  }

  #line(no: number, changed: number): string {
    return `${String(changed).padStart(versionDigits, "0")} ${this.path(no)}\n`;
  }
}
