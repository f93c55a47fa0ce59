// What a crash and a bad disk leave in a spool that nobody has open: a write that did not come to its end, noise, a flipped byte, files of any age.

import { appendFileSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** In [0, 1). */
export type Random = () => number;

const tornBytesMax = 500;
const noiseBytesMax = 3_000;

/** The epoch of the lane that it happened to; undefined when there is none. */
export function damageSpool(directory: string, random: Random): string | undefined {
  const segments = readdirSync(directory)
    .filter((name) => name.endsWith(".seg"))
    .sort();
  const name = segments[Math.floor(random() * segments.length)];
  if (name === undefined) return undefined;
  const path = join(directory, name);
  const damage = damages[Math.floor(random() * damages.length)];
  damage?.(path, random);
  return name.slice(0, 16);
}

const damages: readonly ((path: string, random: Random) => void)[] = [
  // torn tail
  (path, random) => {
    const bytes = readFileSync(path);
    const from = Math.floor(random() * bytes.length);
    appendFileSync(path, bytes.subarray(from, from + Math.ceil(random() * tornBytesMax)));
  },
  // noisy tail
  (path, random) => {
    const noise = Array.from({ length: Math.ceil(random() * noiseBytesMax) }, () => random() * 256);
    appendFileSync(path, Uint8Array.from(noise));
  },
  // flipped byte
  (path, random) => {
    const bytes = readFileSync(path);
    const at = Math.floor(random() * bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 + Math.floor(random() * 255));
    writeFileSync(path, bytes);
  },
  // other times
  (path, random) => {
    const at = new Date(Math.floor(random() * 2_000_000_000) * 1_000);
    utimesSync(path, at, at);
  },
  // left over
  (path, random) => {
    writeFileSync(join(path, "../marks.tmp"), "half of a mark");
    if (random() < 0.5) writeFileSync(path.replace(/-\d+\.seg$/, "-9.seg"), "", { flag: "w" });
  },
];
