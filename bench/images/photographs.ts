// Two hundred photographs as sites have them. Debian has no package with so many, so they are cut out of the 23 photographs of two packages of wallpapers, whose
// originals are large: each piece at one of five widths, as a JPEG of quality 85, which is what cameras' exports and content management systems write.

import { execFileSync } from "node:child_process";
import { globSync, readdirSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { tempDir } from "../../test/support/temp-dir.ts";

/** Of Debian 12 and 13, with their photographs; the other wallpapers in them are drawn. */
const packages = {
  "mate-backgrounds":
    "Aqua Blinds Dune FreshFlower Garden GreenMeadow LadyBird RainDrops Storm TwoWings Wood YellowFlower",
  "plasma-workspace-wallpapers":
    "BytheWater ColdRipple ColorfulCups DarkestHour EveningGlow FallenLeaf Grey Kite OneStandsOut Path summer_1am",
} as const;
const titles = new Set(Object.values(packages).join(" ").split(" "));
const named = new RegExp(`/(?:${[...titles].join("|")})(?:/contents/images/2560x1600)?\\.jpg$`);
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
  const paths = globSync("**/*.jpg", { cwd: from }).filter((path) => named.test(`/${path}`));
  const large = await Promise.all(
    paths.toSorted().map(async (name) => {
      const path = join(from, name);
      const { width, height } = await sharp(path).metadata();
      const title = name.split("/").findLast((part) => titles.has(part.replace(".jpg", "")));
      return { path, title, width, height };
    }),
  );
  if (large.length === 0) throw new Error(`no photographs in ${from}`);
  const made: Photograph[] = [];
  for (let no = 0; made.length < count; no++) {
    const original = large[no % large.length];
    if (original === undefined) break;
    const { path, title, width, height } = original;
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
    made.push({ name: `${title} ${wanted} ${no}`, bytes });
  }
  return made;
}

function fetchPackages(directory: string): string {
  execFileSync("apt-get", ["download", ...Object.keys(packages)], {
    cwd: directory,
    stdio: "pipe",
  });
  const to = join(directory, "unpacked");
  for (const name of readdirSync(directory).filter((one) => one.endsWith(".deb")))
    execFileSync("dpkg-deb", ["-x", join(directory, name), to]);
  return to;
}
