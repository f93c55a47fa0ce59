// A directory of the test's own, gone afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function tempDir(base = tmpdir()): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(base, "accel-"));
  // A process that was killed a moment ago may still make a file in it.
  const options = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 };
  return { path, [Symbol.dispose]: () => rmSync(path, options) };
}
