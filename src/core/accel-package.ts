// An accelerator package as central keeps it: one for each version.

import type { Sha256 } from "./ids.ts";

export type NewPackage = {
  /** The version in its normal form. */
  readonly version: string;
  /** Equal for equal versions. */
  readonly versionKey: string;
  readonly file: string;
  readonly size: number;
  readonly sha256: Sha256;
  /** Name of the file in the directory of packages. */
  readonly storedAs: string;
  readonly userId: number;
};

export type PackageRow = Omit<NewPackage, "userId"> & {
  readonly id: number;
  readonly when_created: string;
};
