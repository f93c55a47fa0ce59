// The host's installer as the agent sees it: a file with the order that the agent writes, and one with the outcome that root writes.

import { lstatSync, readFileSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { uptime } from "node:os";
import { dirname } from "node:path";
import { ensureDirectory, syncDirectory, writeDurable } from "../../base/durable-file.ts";
import type { InstallerOutcome } from "../../core/rollout/order-heeding.ts";
import { packageStatus } from "../../core/rollout/package-status.ts";
import type { OrderState, ReleaseOrder, ReleaseStanding } from "../../core/rollout/rollout.ts";

export type InstallerPlaces = {
  /** Written by the agent: `ID VERSION`. */
  readonly order: string;
  /** Written by the installer: `ID VERSION STATE REASON`. */
  readonly outcome: string;
  /** The link that `systemctl enable accel-agent-rollout.path` makes. */
  readonly enabled: string;
  /** dpkg's list of packages, which says what is held. */
  readonly packages: string;
};

/** The state directory of the agent that the installer listens to: packages are the host's, and the host has one such agent. */
const servedStateDir = "/var/lib/accel-agent";

/** Returns the places of the packages' units; undefined for an agent that they do not serve. */
export function installerPlaces(stateDir: string): InstallerPlaces | undefined {
  if (stateDir !== servedStateDir) return undefined;
  return {
    order: `${servedStateDir}/rollout/order`,
    outcome: "/var/lib/accel-agent-rollout/outcome",
    enabled: "/etc/systemd/system/multi-user.target.wants/accel-agent-rollout.path",
    packages: "/var/lib/dpkg/status",
  };
}

const states: ReadonlySet<string> = new Set<OrderState>([
  "installing",
  "done",
  "refused",
  "failed",
  "returned",
]);
const isState = (text: string): text is OrderState => states.has(text);
const reasonCharsMax = 1_000;

export class HostInstaller {
  readonly #places: InstallerPlaces | undefined;
  #held: { readonly mark: string; readonly isHeld: boolean } | undefined;

  /** Without places nothing is ever installed. */
  constructor(places: InstallerPlaces | undefined) {
    this.#places = places;
  }

  /** Whether the operator of this host lets central install releases. */
  takes(): ReleaseStanding["takes"] {
    const places = this.#places;
    if (places === undefined || !isThere(places.enabled)) return "off";
    return this.#isHeld(places.packages) ? "held" : "yes";
  }

  /** What the installer wrote last; undefined if it wrote nothing, or nothing that can be read. */
  outcome(): InstallerOutcome | undefined {
    const path = this.#places?.outcome;
    if (path === undefined) return undefined;
    try {
      const [id = "", , state = "", ...reason] = readFileSync(path, "utf8").trimEnd().split(" ");
      if (!isState(state)) return undefined;
      const text = reason.join(" ").replaceAll(/\s+/g, " ").slice(0, reasonCharsMax);
      const { mtimeMs: writtenMs } = statSync(path);
      // The host went down in the midst of it: nothing is installed any more.
      if (state === "installing" && writtenMs < Date.now() - uptime() * 1_000) return undefined;
      return { id, state, reason: text, writtenMs };
    } catch {
      return undefined;
    }
  }

  /** The id of the order that lies in the file, taken or not; empty if it cannot be read, undefined if there is none. */
  lying(): string | undefined {
    const path = this.#places?.order;
    if (path === undefined || !isThere(path)) return undefined;
    try {
      return readFileSync(path, "utf8").split(/\s/, 1)[0] ?? "";
    } catch {
      return "";
    }
  }

  /** Takes back whatever the installer was asked. It looks for the order right before it installs. Durable when it resolves. */
  async withdraw(): Promise<void> {
    const path = this.#places?.order;
    if (path === undefined) return;
    await rm(path, { force: true });
    await syncDirectory(dirname(path));
  }

  /** Asks for a version. Durable when it resolves. */
  async ask({ id, version }: ReleaseOrder): Promise<void> {
    const path = this.#places?.order;
    if (path === undefined) return;
    await ensureDirectory(dirname(path));
    await writeDurable(path, `${id} ${version}\n`);
  }

  /** Read again only where dpkg wrote it anew: it is a megabyte. */
  #isHeld(path: string): boolean {
    try {
      const { mtimeMs, size } = statSync(path);
      const mark = `${mtimeMs} ${size}`;
      if (this.#held?.mark !== mark)
        this.#held = { mark, isHeld: holds(readFileSync(path, "latin1")) };
      return this.#held.isHeld;
    } catch {
      return false; // The installer looks as well, and refuses.
    }
  }
}

/** Whether one of the packages that a rollout installs is held. */
function holds(packages: string): boolean {
  return ["accel-agent", "accel-common"].some((name) =>
    packageStatus(packages, name).startsWith("hold "),
  );
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
