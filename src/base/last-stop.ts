// Whether systemd starts nothing behind the stop of this process. SIGTERM does not say that. The unit's ExecStop= looks at the job that systemd has for the unit, and where
// that is a stop and no restart, it sends SIGWINCH to the unit's processes first: a signal that a process which does not know of this ignores (signal(7)).
//
// Of a unit that was masked while it ran systemd has no commands any more, and its stop sends no such signal. It refuses each start of it, that of a restart too: so what
// ends is not started again.

import { readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { systemCode } from "../core/faults.ts";

/** What `process` has of signals. */
export type SignalSource = {
  on(signal: "SIGWINCH", hear: () => void): unknown;
  off(signal: "SIGWINCH", hear: () => void): unknown;
};

export class LastStop implements Disposable {
  readonly #source: SignalSource;
  readonly #isMasked: () => boolean;
  readonly #hear = (): void => void (this.#isTold = true);
  #isTold = false;

  /** `isMasked`: whether the unit is, now. Unsaid: there is no unit. */
  constructor(source: SignalSource, isMasked = (): boolean => false) {
    this.#source = source;
    this.#isMasked = isMasked;
    source.on("SIGWINCH", this.#hear);
  }

  /** Whether it was told so, or nobody can start the unit. It is asked behind SIGTERM. */
  get isKnown(): boolean {
    return this.#isTold || this.#isMasked();
  }

  [Symbol.dispose](): void {
    this.#source.off("SIGWINCH", this.#hear);
  }
}

/** Where `systemctl mask` writes, with `--runtime` the second; what lies in the first goes before. */
const maskPlaces = ["/etc/systemd/system", "/run/systemd/system"];

/** Says whether a unit, or the template that it is of, is masked. Needs no systemd, which on a host without D-Bus answers root alone. */
export function isUnitMasked(unit: string, places: readonly string[] = maskPlaces): boolean {
  const template = unit.replace(/@[^@]*(?=\.service$)/, "@");
  for (const name of template === unit ? [unit] : [unit, template])
    for (const place of places) {
      const is = maskIn(join(place, name));
      if (is !== undefined) return is;
    }
  return false;
}

/** Undefined: there is no such file, or none that can be seen. */
function maskIn(path: string): boolean | undefined {
  try {
    return readlinkSync(path) === "/dev/null";
  } catch (error) {
    // A file in the place of a link. An empty one is a mask, too (systemd.unit(5)).
    return systemCode(error) === "EINVAL" ? readFileSync(path, "utf8") === "" : undefined;
  }
}
