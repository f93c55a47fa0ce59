// What is inside of libvips as sharp brings it: one shared object, into which all that it needs is linked. Its licences, its sources, and a row of the bill of
// materials for each part.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The parts by the names that `versions.json` has, each with the name that its authors use and what it is used under: an identifier of SPDX. */
const parts = {
  aom: ["libaom", "BSD-2-Clause"],
  archive: ["libarchive", "BSD-2-Clause"],
  cairo: ["cairo", "MPL-1.1"],
  cgif: ["cgif", "MIT"],
  exif: ["libexif", "LGPL-3.0-or-later"],
  expat: ["expat", "MIT"],
  ffi: ["libffi", "MIT"],
  fontconfig: ["fontconfig", "MIT"],
  freetype: ["freetype", "FTL"],
  fribidi: ["fribidi", "LGPL-3.0-or-later"],
  glib: ["glib", "LGPL-3.0-or-later"],
  harfbuzz: ["harfbuzz", "MIT"],
  heif: ["libheif", "LGPL-3.0-or-later"],
  highway: ["highway", "BSD-3-Clause"],
  imagequant: ["libimagequant", "BSD-2-Clause"],
  lcms: ["lcms2", "MIT"],
  mozjpeg: ["mozjpeg", "IJG AND BSD-3-Clause AND Zlib"],
  pango: ["pango", "LGPL-3.0-or-later"],
  pixman: ["pixman", "MIT"],
  png: ["libpng", "libpng-2.0"],
  "proxy-libintl": ["proxy-libintl", "LGPL-3.0-or-later"],
  rsvg: ["librsvg", "LGPL-3.0-or-later"],
  tiff: ["libtiff", "libtiff"],
  uhdr: ["libultrahdr", "MIT"],
  vips: ["libvips", "LGPL-3.0-or-later"],
  webp: ["libwebp", "BSD-3-Clause"],
  xml2: ["libxml2", "MIT"],
  "zlib-ng": ["zlib-ng", "Zlib"],
};

/** The licences that the LGPL asks to go with it, as Debian's base-files has them on each system. */
const common = ["LGPL-3", "GPL-3"];

/** The name of the module with the library, for a processor. */
export const libraryModule = (arch) => `@img/sharp-libvips-linux-${arch}`;

/** Describes the module and each part, in the manner of `describeModule`. Throws where it has a part of which nothing is known. */
export function describeLibrary(dir) {
  const { name, version, license } = readJson(join(dir, "package.json"));
  const versions = readJson(join(dir, "versions.json"));
  const unknown = Object.keys(versions).filter((part) => !(part in parts));
  if (unknown.length > 0)
    throw new Error(
      `${name} ${version} contains ${unknown.join(", ")}: write the licence into scripts/package/image-library.mjs`,
    );
  const told = readFileSync(join(dir, "README.md"), "utf8");
  const table = told.slice(told.indexOf("This software contains"));
  const held = Object.entries(versions).map(([part, of]) => {
    const [own, under] = parts[part];
    return { name: own, version: of, license: under, texts: [], isPart: true };
  });
  const texts = [
    "The file lib/libvips-cpp.so.* is used as a library, unchanged, and may be replaced by another build of it: the programs load it by its name, from\n" +
      `/usr/lib/accel-agent/VERSION/node_modules/${name}/lib.\n` +
      `Sources of this build, with the scripts that made it and the places of the sources of each part:\n` +
      `https://github.com/lovell/sharp-libvips/tree/v${version}`,
    ["It contains:", ...held.map((one) => `${one.name} ${one.version} (${one.license})`)].join(
      "\n",
    ),
    table.trim(),
    ...common.map((one) => readFileSync(join("/usr/share/common-licenses", one), "utf8").trim()),
  ];
  return [{ name, version, license, texts }, ...held];
}

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));
