// What a wheel says about itself, by its file name and by its METADATA (Python's binary distribution format,
// core metadata).

import { parsePackageVersion, type PackageVersion } from "./package-version.ts";

export type WheelSaid = {
  /** The normalized name: lower-case, with words joined by `_`. */
  readonly distribution: string;
  readonly version: PackageVersion;
};

const charsMax = 255;

/**
 * Parses `{distribution}-{version}(-{build})?-{python}-{abi}-{platform}.whl`. Returns undefined for any other
 * name.
 */
export function parseWheelName(file: string): WheelSaid | undefined {
  if (file.length > charsMax) return undefined;
  const found =
    /^(?<name>[A-Za-z0-9](?:[\w.]*[A-Za-z0-9])?)-(?<version>[\w.!+]+)(?:-\d[\w.]*)?-[\w.]+-[\w.]+-[\w.]+\.whl$/.exec(
      file,
    )?.groups;
  return said(found?.["name"], found?.["version"]);
}

/** Parses the name of the folder that holds METADATA: `{distribution}-{version}.dist-info`. */
export function parseDistInfo(folder: string): WheelSaid | undefined {
  const found = /^(?<name>[^/-]+)-(?<version>[^/-]+)\.dist-info$/.exec(folder)?.groups;
  return said(found?.["name"], found?.["version"]);
}

/**
 * Reads the fields of the head, which ends at the first empty line. Returns undefined if name or version is
 * missing, unreadable or given twice.
 */
export function parseWheelMetadata(text: string): WheelSaid | undefined {
  const head = text.split(/\r?\n\r?\n/, 1)[0] ?? "";
  const only = (name: string): string | undefined => {
    // The expression has only one quantifier, so that a line of a million blanks does not cost their square.
    const values = [...head.matchAll(new RegExp(`^${name}:(.*)$`, "gim"))];
    return values.length === 1 ? values[0]?.[1]?.trim() : undefined;
  };
  return only("Metadata-Version") === undefined ? undefined : said(only("Name"), only("Version"));
}

function said(name: string | undefined, versionText: string | undefined): WheelSaid | undefined {
  const version = parsePackageVersion(versionText ?? "");
  if (name === undefined || name === "" || version === undefined) return undefined;
  return { distribution: name.toLowerCase().replaceAll(/[-_.]+/g, "_"), version };
}
