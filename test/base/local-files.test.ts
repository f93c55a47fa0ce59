// Which file systems are of this host.

import { expect, test } from "vitest";
import { isOfThisHost } from "../../src/base/local-files.ts";
import { tempDir } from "../support/temp-dir.ts";

test("a directory for temporary files is, and what is no disk is not", async () => {
  using dir = tempDir();
  expect(await isOfThisHost(dir.path)).toBe(true);
  expect(await isOfThisHost("/proc")).toBe(false);
  await expect(isOfThisHost(`${dir.path}/none`)).rejects.toMatchObject({ code: "ENOENT" });
});
