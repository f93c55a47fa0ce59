// Blobs and packages in a bucket, together. Loaded only where the settings name one.

import { BlobObjects, type BlobObjectsDeps } from "./blob-objects.ts";
import type { ObjectStore } from "./object-store.ts";
import { PackageObjects } from "./package-objects.ts";
import { openStaging } from "./staging.ts";

/** `directory`: where is what was received and not sent yet; it is emptied. */
export async function openBucketStore({
  directory,
  ...deps
}: Omit<BlobObjectsDeps, "staging"> & { readonly directory: string }): Promise<ObjectStore> {
  const staging = await openStaging(directory, deps.randomBytes);
  return {
    blobs: new BlobObjects({ ...deps, staging }),
    packages: new PackageObjects({ ...deps, staging }),
  };
}
