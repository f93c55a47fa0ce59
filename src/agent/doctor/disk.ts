// Checks whether the disk has room for what the settings allow: cache, viewsets, request records and bodies together.

import { lstatSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { AgentSettings } from "../settings/fields.ts";
import { existingAbove, isHiddenFrom } from "./files.ts";
import { findingsOf, unseen, type Finding, type Host } from "./finding.ts";

/** Room for databases, certificates and whatever else has no setting of its own. */
const furtherBytes = 256 * 2 ** 20;
/** Less is as good as nothing: the cache is closed. */
const fullBytes = 2 ** 20;
const filesMax = 200_000;

export function checkDisk(settings: AgentSettings, { uid }: Pick<Host, "uid">): Finding {
  const { ok, warning, failed } = findingsOf("disk");
  if (isHiddenFrom(settings.state_dir, uid))
    return unseen("disk", `this user does not see what the agent has in ${settings.state_dir}`);
  const parts = [
    "cache.disk_max",
    "viewset.disk_max",
    "spool.max",
    "accelerator.body_disk_max",
  ] as const;
  const wanted = parts.reduce((sum, key) => sum + settings[key], furtherBytes);
  const at = existingAbove(settings.state_dir);
  const { blocks, bavail, bsize, files, ffree } = statfsSync(at);
  const [size, free] = [blocks * bsize, bavail * bsize];
  const sums = [
    ...parts.map((key) => `${key} ${shown(settings[key])}`),
    `${shown(furtherBytes)} for databases and the like`,
  ].join(" + ");
  if (free < fullBytes)
    return failed(
      `the disk of ${at} is full: ${shown(free)} are free`,
      "Make room. Until then nothing is cached, what is activated waits, and there is little room for request records while central is away.",
    );
  if (files > 0 && ffree === 0)
    return failed(
      `no more files can be made on the disk of ${at}: there are ${files}, its most`,
      "`df -i`, and `du --inodes -x` from its root, say where they are. Until some go, nothing is cached, and what is activated waits.",
    );
  if (wanted > size)
    return failed(
      `the settings allow ${shown(wanted)} and the disk of ${at} has ${shown(size)}: ${sums}`,
      "Make the largest of them smaller. A full disk costs the cache, and request records while central is away.",
    );
  const used = usedBytes(settings.state_dir);
  if (used === undefined)
    return ok(
      `${shown(size)} for ${shown(wanted)}; ${shown(free)} are free, and what the agent has was not counted`,
    );
  return wanted > free + used
    ? warning(
        `the settings allow ${shown(wanted)}; the agent has ${shown(used)} and ${shown(free)} are free on the disk of ${at}`,
        `Others use this disk as well. Give the agent one of its own, or make these smaller: ${sums}.`,
      )
    : ok(`${shown(wanted)} allowed; the agent has ${shown(used)}, ${shown(free)} are free`);
}

/** Counts what lies below a directory; undefined if these are more files than can be counted in a moment. */
function usedBytes(directory: string): number | undefined {
  let bytes = 0;
  let files = 0;
  const waiting = [directory];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    let entries;
    try {
      entries = readdirSync(at, { withFileTypes: true });
    } catch {
      continue; // It is not there yet, or went meanwhile.
    }
    for (const entry of entries) {
      if ((files += 1) > filesMax) return undefined;
      const path = join(at, entry.name);
      if (entry.isDirectory()) waiting.push(path);
      else bytes += blocksOf(path) * 512;
    }
  }
  return bytes;
}

/** Returns nothing of a file that went meanwhile, or that this user may not look at. */
function blocksOf(path: string): number {
  try {
    return lstatSync(path).blocks;
  } catch {
    return 0;
  }
}

export function shown(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 2 ** (10 * power);
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}
