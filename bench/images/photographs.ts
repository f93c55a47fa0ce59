// Two hundred photographs as sites have them. Debian has no package with so many, so they are cut out of the 21 photographs of two packages of wallpapers, whose
// originals are large: each piece at one of five widths, as a JPEG of quality 85, which is what cameras' exports and content management systems write.

import { execFileSync } from "node:child_process";
import { globSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import sharp from "sharp";
import { tempDir } from "../../test/support/temp-dir.ts";

/** Of Debian 12 and 13. Drawn wallpapers are left out. */
const packages = ["plasma-workspace-wallpapers", "mate-backgrounds"] as const;
const drawn =
  /\/(?:desktop|Altai|Flow|Volna|PastelHills|Kite|SafeLanding|Honeywave|Shell|screenshot)|screenshot/;
const widths = [400, 640, 800, 1_200, 1_600] as const;
const quality = 85;

export type Photograph = { readonly name: string; readonly bytes: Uint8Array };

/**
 * Fetches the packages with apt-get, unpacks them without installing, and cuts. The same packages give the same pieces. Throws where apt-get or dpkg-deb is missing or
 * the archive cannot be reached; `unpacked` names a directory in which they are unpacked already.
 */
export async function photographs(
  count: number,
  unpacked: string | undefined,
): Promise<readonly Photograph[]> {
  using dir = tempDir();
  const from = unpacked ?? fetchPackages(dir.path);
  const originals = globSync("**/*.jpg", { cwd: from })
    .filter((path) => !drawn.test(path))
    .toSorted()
    .map((path) => join(from, path));
  const large: { path: string; width: number; height: number }[] = [];
  for (const path of originals) {
    const { width, height } = await sharp(path).metadata();
    if (
      width >= 1_280 &&
      !large.some((one) => basename(one.path) === basename(path) && one.path === path)
    )
      large.push({ path, width, height });
  }
  if (large.length === 0) throw new Error(`no photographs in ${from}`);
  const made: Photograph[] = [];
  for (let no = 0; made.length < count; no++) {
    const { path, width, height } = large[no % large.length] ?? { path: "", width: 0, height: 0 };
    const round = Math.floor(no / large.length);
    const wanted = Math.min(widths[(no + round) % widths.length] ?? 800, width);
    // A piece of three to two, from an eighth to all of the original, at a place that moves with the round.
    const most = Math.min(width, Math.floor(height * 1.5));
    const pieceWidth = Math.max(wanted, Math.floor(most / (1 + (round % 3))));
    const taken = Math.min(pieceWidth, most);
    const takenHeight = Math.floor(taken / 1.5);
    const share = (round * 0.37 + no * 0.11) % 1;
    const left = Math.floor((width - taken) * share);
    const top = Math.floor((height - takenHeight) * ((share * 7) % 1));
    const bytes = await sharp(path)
      .extract({ left, top, width: taken, height: takenHeight })
      .resize({ width: wanted, withoutEnlargement: true })
      .jpeg({ quality })
      .toBuffer();
    made.push({ name: `${basename(path, ".jpg")} ${wanted} ${no}`, bytes });
  }
  return made;
}

function fetchPackages(directory: string): string {
  execFileSync("apt-get", ["download", ...packages], { cwd: directory, stdio: "pipe" });
  const to = join(directory, "unpacked");
  for (const name of readdirSync(directory).filter((one) => one.endsWith(".deb")))
    execFileSync("dpkg-deb", ["-x", join(directory, name), to]);
  return to;
}
