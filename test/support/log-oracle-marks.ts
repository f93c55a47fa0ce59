// Damage to spool/marks between two runs: torn, noise, gone, or as it was some time ago. Copies for the last are taken from time to time.

import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeMarks } from "../../src/agent/requests/spool/spool-marks.ts";
import type { Random } from "./log-oracle-damage.ts";

const noiseBytesMax = 3_000;
/** So often the copy is taken anew: others come back when they are old. */
const copyShare = 0.3;

const kinds = ["torn", "noise", "missing", "older"] as const;

/** Of which runs (by epoch) something was lost that is told nowhere else. `copy`: a path beside the spool. */
export function damageMarks(directory: string, copy: string, random: Random): readonly string[] {
  const path = join(directory, "marks");
  if (!existsSync(path)) return [];
  const bytes = readFileSync(path);
  const lanes = decodeMarks(bytes)?.lanes ?? [];
  const kind = kinds[Math.floor(random() * kinds.length)] ?? "missing";
  switch (kind) {
    case "torn":
      writeFileSync(path, bytes.subarray(0, Math.floor(random() * bytes.length)));
      break;
    case "noise": {
      const noise = Array.from(
        { length: Math.ceil(random() * noiseBytesMax) },
        () => random() * 256,
      );
      writeFileSync(path, Uint8Array.from(noise));
      break;
    }
    case "missing":
      rmSync(path);
      break;
    case "older":
      if (existsSync(copy)) copyFileSync(copy, path);
      break;
    default:
      kind satisfies never;
  }
  return lanes.filter(({ gaps }) => gaps.length > 0).map(({ lane }) => lane.epoch);
}

/** While nobody has the spool open. */
export function copyMarks(directory: string, copy: string, random: Random): void {
  const path = join(directory, "marks");
  if (existsSync(path) && (!existsSync(copy) || random() < copyShare)) copyFileSync(path, copy);
}
