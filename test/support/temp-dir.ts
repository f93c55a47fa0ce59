// A directory of the test's own, gone afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function tempDir(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "accel-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
