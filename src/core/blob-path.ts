// Where a content-addressed file lies below the blob directory: two hex characters of fan-out, then the whole digest as its name.

import type { Sha256 } from "./ids.ts";

export function blobPath(blobsDir: string, sha256: Sha256): string {
  return `${blobsDir}/${sha256.slice(0, 2)}/${sha256}`;
}
